#include <cmath>

#include "graph/gradient.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/normalization.h"

namespace plimsoll {
namespace {

struct LpNormAttrs {
  int64_t axis = -1;
  int64_t p = 2;
};

constexpr int64_t kStrip = 128;

const void* attrs(AttrContext& c) {
  auto* a = c.make<LpNormAttrs>();
  a->axis = c.integer("axis", -1);
  a->p = c.integer("p", 2);
  if (a->p != 1 && a->p != 2) c.reject("attribute 'p': expected 1 or 2, found {}", a->p);
  return a;
}

void infer(InferContext& c) {
  infer_float_unary(c);
  if (c.ranked(0)) c.axis(c.attrs<LpNormAttrs>().axis, c.rank(0));
}

void alias(AliasContext& c) {
  c.overwrite(0);
}

// 1 / norm; where the norm is 0 the result is 0.
double inverse_norm(double sum, bool squared) {
  const double norm = squared ? std::sqrt(sum) : sum;
  return norm == 0 ? 0 : 1 / norm;
}

template <typename T>
void normalize_row(const T* x, T* y, int64_t count, bool squared) {
  double sum = 0;
  for_each_block(x, count, [&](const auto* wide, int64_t, int64_t size) {
    for (int64_t i = 0; i < size; ++i) {
      const double v = static_cast<double>(wide[i]);
      sum += squared ? v * v : std::fabs(v);
    }
  });
  const double factor = inverse_norm(sum, squared);
  for_each_block(x, count, [&](auto* wide, int64_t start, int64_t size) {
    for (int64_t i = 0; i < size; ++i)
      wide[i] = static_cast<WideType<T>>(static_cast<double>(wide[i]) * factor);
    narrow(wide, y + start, size);
  });
}

template <typename T>
void normalize_columns(const T* x, T* y, int64_t rows, int64_t stride, int64_t cols, bool squared) {
  WideType<T> block[kStrip];
  double factor[kStrip] = {};
  for (int64_t r = 0; r < rows; ++r) {
    widen(x + r * stride, block, cols);
    for (int64_t i = 0; i < cols; ++i) {
      const double v = static_cast<double>(block[i]);
      factor[i] += squared ? v * v : std::fabs(v);
    }
  }
  for (int64_t i = 0; i < cols; ++i) factor[i] = inverse_norm(factor[i], squared);
  for (int64_t r = 0; r < rows; ++r) {
    widen(x + r * stride, block, cols);
    for (int64_t i = 0; i < cols; ++i)
      block[i] = static_cast<WideType<T>>(static_cast<double>(block[i]) * factor[i]);
    narrow(block, y + r * stride, cols);
  }
}

void run(const RunContext& c) {
  const TensorView &x = c.inputs[0], &y = c.outputs[0];
  const auto& a = c.attrs<LpNormAttrs>();
  if (y.elements() == 0) return;
  const auto axis = static_cast<size_t>(a.axis < 0 ? a.axis + static_cast<int64_t>(x.rank()) : a.axis);
  const int64_t outer = count_of(x.dims.first(axis)), rows = x.dims[axis], inner = stride_of(x.dims, axis);
  const int64_t strips = (inner + kStrip - 1) / kStrip;
  visit_float(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels::parallel_for(y.elements() < 16384 ? 1 : c.threads, outer * strips, [&](int64_t task) {
      const int64_t col = task % strips * kStrip, at = task / strips * rows * inner + col;
      if (inner == 1) return normalize_row(x.as<T>() + at, y.as<T>() + at, rows, a.p == 2);
      normalize_columns(x.as<T>() + at, y.as<T>() + at, rows, inner, std::min(kStrip, inner - col), a.p == 2);
    });
  });
}

Cost cost(const NodeContext& c) {
  constexpr int64_t kOperationsPerElement = 4;
  return {checked_mul(kOperationsPerElement, product(c.dims(0)).value()), tensor_bytes(c)};
}

// (dy - direction * sum(dy * y)) / norm, where the direction is y, or the sign of x. A norm of 0 counts as
// small.
void gradient(GradientContext& c) {
  const auto& a = c.attrs<LpNormAttrs>();
  Edge *x = c.in(0), *y = c.out(0), *dy = c.gradient(), *axes = c.build.integers({a.axis});
  Edge* norm = c.op(a.p == 2 ? "ReduceL2" : "ReduceL1", {x, axes});
  norm = c.op("Max", {norm, c.scalar(1e-12)});
  Edge* sum = c.op("ReduceSum", {c.op("Mul", {dy, y}), axes});
  Edge* direction = a.p == 2 ? y : c.op("Sign", {x});
  c.set(0, c.op("Div", {c.op("Sub", {dy, c.op("Mul", {direction, sum})}), norm}));
}

}  // namespace

extern const OpDef op_lp_normalization = {
    .name = "LpNormalization",
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
    .cost = cost,
    .gradient = gradient,
};

}  // namespace plimsoll
