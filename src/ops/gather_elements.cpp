#include <algorithm>

#include "graph/gradient.h"
#include "ops/checked_index.h"
#include "ops/movement.h"
#include "ops/selection_cost.h"

namespace plimsoll {
namespace {

struct Attrs {
  int64_t axis = 0;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->axis = c.integer("axis", 0);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, kAllTypes);
  c.expect_type(1, kIndexTypes);
  c.expect_rank(0, 1, InferContext::kMaxRank);
  if (!c.ranked(1)) return c.set_unranked_output(0, c.type(0));
  c.set_output(0, c.type(0), c.dims(1));
  if (!c.ranked(0)) return;
  if (c.rank(0) != c.rank(1)) c.reject("inputs 0 and 1: ranks {} and {} differ", c.rank(0), c.rank(1));
  const auto axis = static_cast<size_t>(c.axis(c.attrs<Attrs>().axis, c.rank(0)));
  for (size_t i = 0; i < c.rank(0); ++i) {
    const Dim have = c.dims(0)[i], want = c.dims(1)[i];
    if (i != axis && have.is_constant() && want.is_constant() && want.value() > have.value())
      c.reject("indices of shape {} exceed data of shape {}", to_string(c.dims(1)), to_string(c.dims(0)));
  }
}

// `count` elements along the last axis; `step` is 1 where that is not the axis of the indices.
template <typename T, typename I>
void gather_line(const RunContext& c, const T* data, int64_t size, int64_t stride, int64_t step,
                 const I* indices, T* out, int64_t count) {
  int64_t other = 0;
  if (step == 1) {
    for (int64_t i = 1; i < count; ++i) other |= indices[i] != indices[0];
    // An index that was expanded: a row as it is.
    if (other == 0) return (void)std::copy_n(data + checked_index(c, indices[0], size) * stride, count, out);
  }
  for (int64_t i = 0; i < count; ++i) out[i] = data[i * step + checked_index(c, indices[i], size) * stride];
}

template <typename T, typename I>
void gather_lines(const RunContext& c, size_t axis) {
  const TensorView &data = c.inputs[0], &indices = c.inputs[1];
  // Behind the axis, dimensions of one element are none.
  size_t last = data.rank() - 1;
  while (last > axis && data.dims[last] == 1) --last;
  const int64_t count = indices.dims[last], total = indices.elements();
  const int64_t size = data.dims[axis], stride = stride_of(data.dims, axis);
  int64_t position[InferContext::kMaxRank] = {}, strides[InferContext::kMaxRank], base = 0;
  for (size_t i = 0; i < last; ++i) strides[i] = i == axis ? 0 : stride_of(data.dims, i);
  for (int64_t n = 0; n < total; n += count) {
    gather_line(c, data.as<T>() + base, size, stride, axis == last ? 0 : 1, indices.as<I>() + n,
                c.outputs[0].as<T>() + n, count);
    for (size_t i = last; i-- > 0;) {
      base += strides[i];
      if (++position[i] < indices.dims[i]) break;
      base -= strides[i] * indices.dims[i];
      position[i] = 0;
    }
  }
}

void run(const RunContext& c) {
  int64_t signed_axis = c.attrs<Attrs>().axis;
  if (signed_axis < 0) signed_axis += static_cast<int64_t>(c.inputs[0].rank());
  const auto axis = static_cast<size_t>(signed_axis);
  visit_width(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    c.inputs[1].type == ElementType::kInt32 ? gather_lines<T, int32_t>(c, axis)
                                            : gather_lines<T, int64_t>(c, axis);
  });
}

void gradient(GradientContext& c) {
  Edge* zeros = c.op("Expand", {c.scalar(0), c.shape_of(c.in(0))});
  const AttributeList attributes = c.attributes().set("axis", c.attrs<Attrs>().axis).set("reduction", "add");
  c.set(0, c.op("ScatterElements", {zeros, c.in(1), c.gradient()}, attributes));
}

}  // namespace

extern const OpDef op_gather_elements = {
    .name = "GatherElements",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .cost = cost_selection,
    .gradient = gradient,
};

}  // namespace plimsoll
