// Ht = (1 - zt) * ht + zt * Ht-1; gates in the order z, r, h. Which comes first, R's product or the reset of
// the state, the attribute linear_before_reset says.
#include "ops/recurrent_gradient.h"
#include "ops/recurrent_run.h"

namespace plimsoll {
namespace {

constexpr RecurrentKind kGru = {3, 2, 2, {"sigmoid", "tanh", nullptr}, false};

const void* attrs(AttrContext& c) {
  return recurrent_attrs(c, kGru);
}

template <typename Number>
struct GruStep {
  using Run = RecurrentRun<Number>;

  template <typename IsActive>
  void advance(Run& run, int64_t d, Number* gates, int64_t width, IsActive is_active) {
    const int64_t n = run.hidden();
    run.multiply_by_r(d, run.h(0), 0, 2, gates, width, true);
    run.each_sequence([&](int64_t b) {
      run.activate(run.function(d, 0), gates + b * width);
      run.activate(run.function(d, 0), gates + b * width + n);
    });
    if (run.attrs().linear_before_reset) {
      multiply_then_reset(run, d, gates, width);
    } else {
      reset_then_multiply(run, d, gates, width);
    }
    run.each_sequence([&](int64_t b) {
      if (!is_active(b)) return;
      const Number* z = gates + b * width;
      Number* candidate = gates + b * width + 2 * n;
      run.activate(run.function(d, 1), candidate);
      Number* h = run.h(b);
      for (int64_t j = 0; j < n; ++j) h[j] = (1 - z[j]) * candidate[j] + z[j] * h[j];
    });
  }

  static void reset_then_multiply(Run& run, int64_t d, Number* gates, int64_t width) {
    const int64_t n = run.hidden();
    Number* reset = run.state(1);
    for (int64_t b = 0; b < run.batch(); ++b) {
      const Number *r = gates + b * width + n, *h = run.h(b);
      for (int64_t j = 0; j < n; ++j) reset[b * n + j] = r[j] * h[j];
    }
    run.multiply_by_r(d, reset, 2, 1, gates + 2 * n, width, true);
  }

  static void multiply_then_reset(Run& run, int64_t d, Number* gates, int64_t width) {
    const int64_t n = run.hidden();
    Number* product = run.state(1);
    run.multiply_by_r(d, run.h(0), 2, 1, product, n, false);
    const Number* bias = run.bias_of_r();
    for (int64_t b = 0; b < run.batch(); ++b) {
      const Number* r = gates + b * width + n;
      Number* candidate = gates + b * width + 2 * n;
      for (int64_t j = 0; j < n; ++j) candidate[j] += r[j] * (product[b * n + j] + bias[j]);
    }
  }
};

void gradient(GradientContext& c) {
  gradient_recurrent(c, "gru");
}

}  // namespace

extern const OpDef op_gru = {
    .name = "GRU",
    .inputs = {3, 6},
    .outputs = {0, 2},
    .attrs = attrs,
    .infer = infer_recurrent,
    .select = select_recurrent,
    .pack = pack_recurrent,
    .run = run_recurrent<GruStep>,
    .cost = cost_recurrent,
    .gradient = gradient,
};

}  // namespace plimsoll
