#include <algorithm>
#include <cmath>

#include "ops/elementwise.h"
#include "ops/gradient_terms.h"
#include "ops/movement.h"
#include "ops/normalization.h"

namespace plimsoll {
namespace {

struct LrnAttrs {
  float alpha = 1e-4f, beta = 0.75f, bias = 1;
  int64_t size = 1;
};

constexpr int64_t kStrip = 128;

const void* attrs(AttrContext& c) {
  auto* a = c.make<LrnAttrs>();
  a->alpha = c.real("alpha", 1e-4f);
  a->beta = c.real("beta", 0.75f);
  a->bias = c.real("bias", 1.0f);
  a->size = c.integer("size");
  if (a->size < 1) c.reject("attribute 'size': expected at least 1, found {}", a->size);
  return a;
}

void infer(InferContext& c) {
  infer_float_unary(c);
  c.expect_rank(0, 2, InferContext::kMaxRank);
}

// x = x / base^beta; the usual exponents go without pow.
template <typename W>
void divide_by_power(W* x, W* base, int64_t count, float beta) {
  if (beta == 0.75f) {
    for (int64_t i = 0; i < count; ++i) {
      const W root = std::sqrt(base[i]);
      x[i] /= root * std::sqrt(root);
    }
  } else if (beta == 0.5f) {
    for (int64_t i = 0; i < count; ++i) x[i] /= std::sqrt(base[i]);
  } else if (beta == 1) {
    for (int64_t i = 0; i < count; ++i) x[i] /= base[i];
  } else {
    for (int64_t i = 0; i < count; ++i) x[i] /= std::pow(base[i], static_cast<W>(beta));
  }
}

// One channel of one strip of columns: the squares of its neighbours are summed anew, without drift.
template <typename T>
void normalize(const LrnAttrs& a, const T* x, T* y, int64_t channel, int64_t channels, int64_t plane,
               int64_t cols) {
  using W = WideType<T>;
  W block[kStrip], sum[kStrip] = {};
  const int64_t before = (a.size - 1) / 2, after = a.size - 1 - before;
  const int64_t first = std::max<int64_t>(0, channel - before);
  const int64_t last = channel < channels - after ? channel + after : channels - 1;
  for (int64_t k = first; k <= last; ++k) {
    widen(x + k * plane, block, cols);
    for (int64_t i = 0; i < cols; ++i) sum[i] += block[i] * block[i];
  }
  const W scale = static_cast<W>(static_cast<double>(a.alpha) / static_cast<double>(a.size));
  for (int64_t i = 0; i < cols; ++i) sum[i] = static_cast<W>(a.bias) + scale * sum[i];
  widen(x + channel * plane, block, cols);
  divide_by_power(block, sum, cols, a.beta);
  narrow(block, y + channel * plane, cols);
}

void run(const RunContext& c) {
  const TensorView &x = c.inputs[0], &y = c.outputs[0];
  if (y.elements() == 0) return;
  const int64_t channels = x.dims[1], plane = stride_of(x.dims, 1);
  const int64_t strips = (plane + kStrip - 1) / kStrip;
  visit_float(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels::parallel_for(y.elements() < 16384 ? 1 : c.threads, x.dims[0] * strips, [&](int64_t task) {
      const int64_t col = task % strips * kStrip, at = task / strips * channels * plane + col;
      for (int64_t k = 0; k < channels; ++k)
        normalize(c.attrs<LrnAttrs>(), x.as<T>() + at, y.as<T>() + at, k, channels, plane,
                  std::min(kStrip, plane - col));
    });
  });
}

Cost cost(const NodeContext& c) {
  const double size = static_cast<double>(std::min<int64_t>(c.attrs<LrnAttrs>().size, c.dims(0)[1].value()));
  const double operations = (2 * size + 20) * static_cast<double>(product(c.dims(0)).value());
  return {static_cast<int64_t>(std::min(operations, 9e18)), tensor_bytes(c)};
}

// Means of `size` neighbours among the channels, zeros beyond the ends.
Term neighbours(const GradientContext& c, const Term& x, int64_t before, int64_t after) {
  const int64_t kernel[] = {before + after + 1, 1}, pads[] = {before, 0, after, 0};
  Edge* image =
      c.op("Unsqueeze", {c.op("Reshape", {x.edge(), c.build.integers({0, 0, -1})}), c.build.integers({1})});
  Edge* mean = c.op("AveragePool", {image},
                    c.attributes()
                        .set("kernel_shape", std::span<const int64_t>(kernel))
                        .set("pads", std::span<const int64_t>(pads))
                        .set("count_include_pad", int64_t{1}));
  return {c, c.op("Reshape", {mean, c.shape_of(c.in(0))})};
}

// With s = bias + alpha * mean(x^2), y = x * s^-beta: every neighbour's s has its share of x.
void gradient(GradientContext& c) {
  const LrnAttrs& a = c.attrs<LrnAttrs>();
  const int64_t before = (a.size - 1) / 2, after = a.size - 1 - before;
  const Term x = in(c), s = neighbours(c, x * x, before, after) * double{a.alpha} + double{a.bias};
  const Term direct = dy(c) * s.binary("Pow", s.number(-double{a.beta}));
  const Term shares = neighbours(c, direct * x / s, after, before);
  c.set(0, (direct - x * shares * (2 * double{a.alpha} * double{a.beta})).edge());
}

}  // namespace

extern const OpDef op_lrn = {
    .name = "LRN",
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .cost = cost,
    .gradient = gradient,
};

}  // namespace plimsoll
