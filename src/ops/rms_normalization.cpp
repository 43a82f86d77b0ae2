#include <cmath>

#include "kernels/reduce.h"
#include "ops/elementwise.h"
#include "ops/normalization.h"
#include "ops/row_norm_gradient.h"

namespace plimsoll {
namespace {

struct RmsNormAttrs {
  int64_t axis = -1;
  float epsilon = 1e-5f;
};

constexpr size_t kX = 0, kScale = 1;

const void* attrs(AttrContext& c) {
  auto* a = c.make<RmsNormAttrs>();
  a->axis = c.integer("axis", -1);
  a->epsilon = c.real("epsilon", 1e-5f);
  read_stash_type(c);
  return a;
}

// The scale is broadcast to X; the output has the scale's type.
void infer(InferContext& c) {
  c.expect_type(kX, kFloatTypes);
  c.expect_type(kScale, kFloatTypes);
  set_output_like(c, 0, c.type(kScale), kX);
  if (!c.ranked(kX)) return;
  c.axis(c.attrs<RmsNormAttrs>().axis, c.rank(kX));
  if (!c.ranked(kScale)) return;
  const auto x = c.dims(kX), scale = c.dims(kScale);
  if (!may_broadcast_to(x, scale))
    c.reject("scale of shape {} cannot be broadcast to {}", to_string(scale), to_string(x));
}

void alias(AliasContext& c) {
  if (c.type(kX) == c.type(kScale)) c.overwrite(kX);  // a row is read whole before it is written
}

template <typename T>
double sum_of_squares(const T* x, int64_t count) {
  constexpr auto kind = kernels::ReduceKind::kSumSquare;
  if constexpr (std::is_same_v<T, double>) {
    double sum;
    kernels::reduce_rows_f64(kind, x, 1, count, &sum);
    return sum;
  } else if constexpr (std::is_same_v<T, float>) {
    float sum;
    kernels::reduce_rows_f32(kind, x, 1, count, &sum);
    return sum;
  } else {
    double sum = 0;
    for_each_block(x, count, [&](const float* wide, int64_t, int64_t size) {
      float part;
      kernels::reduce_rows_f32(kind, wide, 1, size, &part);
      sum += double{part};
    });
    return sum;
  }
}

// The scale has an element per element of a row, the same for every row.
bool is_whole(std::span<const int64_t> x, const TensorView& scale, int64_t cols) {
  if (scale.elements() != cols) return false;
  int64_t inner = 1;
  for (size_t i = 0; inner < cols; ++i) {
    const int64_t dim = x[x.size() - 1 - i];
    if (i >= scale.rank() || scale.dims[scale.rank() - 1 - i] != dim) return false;
    inner *= dim;
  }
  return true;
}

template <typename T, typename V>
void scale_run(const T* x, const V* scale, int64_t scale_step, V* y, int64_t count, double inverse) {
  using W = std::conditional_t<std::is_same_v<T, double> || std::is_same_v<V, double>, double, float>;
  constexpr int64_t kBlock = 256;
  W wide[kBlock], factors[kBlock];
  const W factor = static_cast<W>(inverse);
  if (scale_step == 0) {
    widen(scale, factors, 1);
    std::fill(factors + 1, factors + kBlock, factors[0]);
  }
  for (int64_t start = 0; start < count; start += kBlock) {
    const int64_t size = std::min(kBlock, count - start);
    widen(x + start, wide, size);
    if (scale_step != 0) widen(scale + start, factors, size);
    for (int64_t i = 0; i < size; ++i) wide[i] = wide[i] * factor * factors[i];
    narrow(wide, y + start, size);
  }
}

template <typename T, typename V>
void normalize(const RunContext& c) {
  const auto& a = c.attrs<RmsNormAttrs>();
  const TensorView &x = c.inputs[kX], &scale = c.inputs[kScale];
  const auto rank = static_cast<int64_t>(x.rank());
  int64_t rows = 1, cols = 1;
  for (int64_t i = 0; i < rank; ++i)
    (i < (a.axis < 0 ? a.axis + rank : a.axis) ? rows : cols) *= x.dims[static_cast<size_t>(i)];
  const bool whole = is_whole(x.dims, scale, cols);
  const int64_t last = whole ? cols : x.dims[x.rank() - 1];
  const BroadcastWalk walk{x.dims, scale.dims};
  const int64_t step = scale.elements() == 1 || (!whole && scale.dims[scale.rank() - 1] == 1) ? 0 : 1;
  kernels::parallel_for(rows * cols < 16384 ? 1 : c.threads, rows, [&](int64_t row) {
    const T* from = x.as<T>() + row * cols;
    const double mean = sum_of_squares(from, cols) / static_cast<double>(cols);
    const double inverse = 1 / std::sqrt(mean + double{a.epsilon});
    for (int64_t start = 0; start < cols; start += last) {
      const int64_t at = whole ? 0 : walk.offset(row * cols + start);
      scale_run(from + start, scale.as<V>() + at, step, c.outputs[0].as<V>() + row * cols + start, last,
                inverse);
    }
  });
}

void run(const RunContext& c) {
  if (c.outputs[0].elements() == 0) return;
  visit_float(c.inputs[kX].type, [&](auto x) {
    visit_float(c.inputs[kScale].type, [&](auto scale) {
      normalize<typename decltype(x)::type, typename decltype(scale)::type>(c);
    });
  });
}

Cost cost(const NodeContext& c) {
  constexpr int64_t kOperationsPerElement = 5;
  return {checked_mul(kOperationsPerElement, product(c.dims(kX)).value()), tensor_bytes(c)};
}

void gradient(GradientContext& c) {
  const RmsNormAttrs& a = c.attrs<RmsNormAttrs>();
  gradient_row_norm(c, {a.axis, a.epsilon, false});
}

}  // namespace

extern const OpDef op_rms_normalization = {
    .name = "RMSNormalization",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
    .cost = cost,
    .gradient = gradient,
};

}  // namespace plimsoll
