// The gradient of Gather, of an embedding foremost: zeros of a shape, to whose rows those of the gradient are
// added by index. Inputs: gradient, indices, shape. Threads share out columns, so that sums have one order.
#include <cstring>

#include "kernels/parallel.h"
#include "ops/checked_index.h"
#include "ops/elementwise.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr size_t kIndices = 1, kShape = 2;

struct Attrs {
  int64_t axis = 0;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->axis = c.integer("axis", 0);
  return a;
}

void check_shapes(InferContext& c, std::span<const Dim> shape) {
  const auto axis = static_cast<size_t>(c.axis(c.attrs<Attrs>().axis, shape.size()));
  const auto indices = c.dims(kIndices);
  std::vector<Dim> expected(shape.begin(), shape.begin() + static_cast<ptrdiff_t>(axis));
  expected.insert(expected.end(), indices.begin(), indices.end());
  expected.insert(expected.end(), shape.begin() + static_cast<ptrdiff_t>(axis) + 1, shape.end());
  bool fits = expected.size() == c.rank(0);
  for (size_t i = 0; fits && i < expected.size(); ++i)
    fits = !expected[i].is_constant() || !c.dims(0)[i].is_constant() || expected[i] == c.dims(0)[i];
  if (!fits) c.reject("expected a gradient of shape {}, found {}", to_string(expected), to_string(c.dims(0)));
}

void infer(InferContext& c) {
  c.expect_type(0, kFloatTypes);
  c.expect_type(kIndices, kIndexTypes);
  c.expect_type(kShape, types(ElementType::kInt64));
  const auto shape = c.values(kShape);
  if (!shape) return set_output_shaped_by(c, c.type(0), kShape);
  if (c.ranked(0) && c.ranked(kIndices)) check_shapes(c, *shape);
  c.set_output(0, c.type(0), *shape);
}

// Before threads share the work out: an Error must not leave one of them.
void check_indices(const RunContext& c, int64_t rows) {
  const TensorView& indices = c.inputs[kIndices];
  for (int64_t i = 0, count = indices.elements(); i < count; ++i)
    checked_index(c, index_at(indices, i), rows);
}

// Columns [first, last) of all rows of one outer index.
template <typename T>
void add_rows(const TensorView& indices, const T* from, T* to, int64_t rows, int64_t inner, int64_t first,
              int64_t last) {
  for (int64_t row = 0; row < rows; ++row) std::fill(to + row * inner + first, to + row * inner + last, T{});
  for (int64_t i = 0, count = indices.elements(); i < count; ++i) {
    const int64_t index = index_at(indices, i);
    const T* x = from + i * inner;
    T* y = to + (index < 0 ? index + rows : index) * inner;
    for (int64_t k = first; k < last; ++k) y[k] = static_cast<T>(load_element(y[k]) + load_element(x[k]));
  }
}

void run(const RunContext& c) {
  const TensorView &from = c.inputs[0], &to = c.outputs[0];
  const int64_t named = c.attrs<Attrs>().axis;
  const auto axis = static_cast<size_t>(named < 0 ? named + static_cast<int64_t>(to.rank()) : named);
  const int64_t rows = to.dims[axis], inner = stride_of(to.dims, axis), outer = count_of(to.dims.first(axis));
  const int64_t count = c.inputs[kIndices].elements();
  check_indices(c, rows);
  if (to.elements() == 0) return;
  constexpr int64_t kColumns = 64;
  const int64_t columns = std::max(kColumns, (inner + c.threads - 1) / c.threads);
  const int64_t strips = (inner + columns - 1) / columns;
  visit_float(from.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels::parallel_for(from.elements() < 16384 ? 1 : c.threads, outer * strips, [&](int64_t task) {
      const int64_t o = task / strips, first = task % strips * columns;
      add_rows(c.inputs[kIndices], from.as<T>() + o * count * inner, to.as<T>() + o * rows * inner, rows,
               inner, first, std::min(inner, first + columns));
    });
  });
}

}  // namespace

extern const OpDef op_gather_gradient = {
    .domain = kPlimsollDomain,
    .name = "GatherGradient",
    .inputs = {3, 3},
    .attrs = attrs,
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll
