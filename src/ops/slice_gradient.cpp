// The gradient of Slice: zeros of a shape, in which what was cut out gets the gradient. Inputs: gradient,
// shape, then Slice's own starts, ends, axes, steps.
#include <cstring>

#include "ops/movement.h"
#include "ops/slice.h"

namespace plimsoll {
namespace {

constexpr size_t kShape = 1, kStarts = 2, kEnds = 3, kAxes = 4, kSteps = 5;

void infer(InferContext& c) {
  c.expect_type(0, kAllTypes);
  c.expect_type(kShape, types(ElementType::kInt64));
  for (size_t i = kStarts; i < c.input_count(); ++i) {
    if (c.has_input(i)) c.expect_type(i, kIndexTypes);
  }
  const auto shape = c.values(kShape);
  if (!shape) return set_output_shaped_by(c, c.type(0), kShape);
  if (c.ranked(0) && c.rank(0) != shape->size())
    c.reject("a gradient of rank {} does not fit a shape of {}", c.rank(0), shape->size());
  c.set_output(0, c.type(0), *shape);
}

SliceRange range_of(const RunContext& c, size_t axis) {
  const auto rank = static_cast<int64_t>(c.outputs[0].rank());
  const int64_t dim = c.outputs[0].dims[axis];
  for (int64_t i = 0; i < c.inputs[kStarts].elements(); ++i) {
    const int64_t named = c.has_input(kAxes) ? index_at(c.inputs[kAxes], i) : i;
    if ((named < 0 ? named + rank : named) != static_cast<int64_t>(axis)) continue;
    return make_slice_range(dim, index_at(c.inputs[kStarts], i), index_at(c.inputs[kEnds], i),
                            c.has_input(kSteps) ? index_at(c.inputs[kSteps], i) : 1);
  }
  return {0, dim, 1};
}

void run(const RunContext& c) {
  const TensorView &from = c.inputs[0], &to = c.outputs[0];
  if (to.elements() == 0) return;
  const size_t width = width_of(from.type);
  if (from.elements() != to.elements()) std::memset(to.data, 0, static_cast<size_t>(to.bytes()));
  if (from.elements() == 0) return;
  kernels::CopyShape shape;
  int64_t source = 1, target = 1, offset = 0;
  for (size_t axis = to.rank(); axis-- > 0;) {
    const SliceRange range = range_of(c, axis);
    const int64_t dim = from.dims[axis];
    if (range.count != Dim(dim))
      fail(ErrorCode::kInvalidArgument, "{}: axis {}: expected {} elements of the gradient, found {}",
           c.node->label(), axis, range.count.value(), dim);
    offset += range.start.value() * target;
    shape.add(dim, source, dim == 1 ? 0 : range.step * target);
    source *= dim;
    target *= to.dims[axis];
  }
  kernels::strided_copy(to.data + offset * static_cast<int64_t>(width), from.data, shape, width, c.threads);
}

}  // namespace

extern const OpDef op_slice_gradient = {
    .domain = kPlimsollDomain,
    .name = "SliceGradient",
    .inputs = {4, 6},
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll
