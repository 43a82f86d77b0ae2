#include "ops/arg_extreme.h"

#include <algorithm>

#include "kernels/arg_extreme.h"
#include "kernels/parallel.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

template <typename T>
bool beats(const ArgExtremeAttrs& a, T x, T best) {
  if (x == best) return a.last;
  return a.largest ? x > best : x < best;
}

// Integers.
template <typename T>
void arg_slices(const ArgExtremeAttrs& a, const T* in, int64_t* out, int64_t size, int64_t inner) {
  for (int64_t i = 0; i < inner; ++i) out[i] = 0;
  for (int64_t step = 1; step < size; ++step) {
    for (int64_t i = 0; i < inner; ++i) {
      if (beats(a, in[step * inner + i], in[out[i] * inner + i])) out[i] = step;
    }
  }
}

constexpr int64_t kTaskElements = 16384;

template <typename T>
void arg_rows(const RunContext& c, const kernels::ArgExtreme& f, int64_t rows, int64_t size) {
  const int64_t most = std::max<int64_t>(1, kTaskElements / size);
  kernels::parallel_for(rows * size < 2 * kTaskElements ? 1 : c.threads, (rows + most - 1) / most,
                        [&](int64_t task) {
                          const int64_t row = task * most;
                          kernels::arg_rows(f, c.inputs[0].as<T>() + row * size, std::min(most, rows - row),
                                            size, c.outputs[0].as<int64_t>() + row);
                        });
}

template <typename T>
void arg_columns(const RunContext& c, const kernels::ArgExtreme& f, int64_t outer, int64_t size,
                 int64_t inner) {
  constexpr int64_t kStrip = 64;
  const int64_t strips = (inner + kStrip - 1) / kStrip;
  kernels::parallel_for(outer * size * inner < 2 * kTaskElements ? 1 : c.threads, outer * strips,
                        [&](int64_t task) {
                          const int64_t o = task / strips, column = task % strips * kStrip;
                          kernels::arg_columns(f, c.inputs[0].as<T>() + o * size * inner + column, size,
                                               std::min(kStrip, inner - column), inner,
                                               c.outputs[0].as<int64_t>() + o * inner + column);
                        });
}

}  // namespace

const void* arg_extreme_attrs(AttrContext& c, bool largest) {
  ArgExtremeAttrs* a = c.make<ArgExtremeAttrs>();
  a->largest = largest;
  a->axis = c.integer("axis", 0);
  a->keep_dims = c.integer("keepdims", 1) != 0;
  if (c.opset() >= 12) a->last = c.integer("select_last_index", 0) != 0;
  return a;
}

void infer_arg_extreme(InferContext& c) {
  c.expect_type(0, kNumericTypes);
  if (!c.ranked(0)) return c.set_unranked_output(0, ElementType::kInt64);
  const ArgExtremeAttrs& a = c.attrs<ArgExtremeAttrs>();
  const int64_t axis = c.axis(a.axis, c.rank(0));
  std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
  const Dim size = dims[static_cast<size_t>(axis)];
  dims[static_cast<size_t>(axis)] = 1;
  const Dim results = product(dims);
  if (size == Dim(0) && results.is_constant() && results.value() > 0)
    c.reject("axis {} of shape {} is empty", axis, to_string(c.dims(0)));
  if (!a.keep_dims) dims.erase(dims.begin() + axis);
  c.set_output(0, ElementType::kInt64, dims);
}

void run_arg_extreme(const RunContext& c) {
  const ArgExtremeAttrs& a = c.attrs<ArgExtremeAttrs>();
  const TensorView& in = c.inputs[0];
  if (in.elements() == 0) return;
  const auto axis = static_cast<size_t>(a.axis < 0 ? a.axis + static_cast<int64_t>(in.rank()) : a.axis);
  const int64_t size = in.dims[axis], inner = stride_of(in.dims, axis),
                outer = in.elements() / (size * inner);
  if (inner > 1 && size >= int64_t{1} << 31)
    fail(ErrorCode::kNotImplemented, "{}: an axis of {}; less than 2^31 is implemented", c.node->label(),
         size);
  if (is_float(in.type)) {
    const kernels::ArgExtreme f{a.largest, a.last};
    return visit_float(in.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      inner == 1 ? arg_rows<T>(c, f, outer, size) : arg_columns<T>(c, f, outer, size, inner);
    });
  }
  visit_integer(in.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t o = 0; o < outer; ++o)
      arg_slices(a, in.as<T>() + o * size * inner, c.outputs[0].as<int64_t>() + o * inner, size, inner);
  });
}

}  // namespace plimsoll
