// Ht = f(Xt * W + Ht-1 * R + b)
#include "ops/recurrent_gradient.h"
#include "ops/recurrent_run.h"

namespace plimsoll {
namespace {

constexpr RecurrentKind kRnn = {1, 1, 1, {"tanh", nullptr, nullptr}, false};

const void* attrs(AttrContext& c) {
  return recurrent_attrs(c, kRnn);
}

template <typename Number>
struct RnnStep {
  template <typename IsActive>
  void advance(RecurrentRun<Number>& run, int64_t d, Number* gates, int64_t width, IsActive is_active) {
    run.multiply_by_r(d, run.h(0), 0, 1, gates, width, true);
    run.each_sequence([&](int64_t b) {
      if (!is_active(b)) return;
      run.activate(run.function(d, 0), gates + b * width);
      std::copy_n(gates + b * width, width, run.h(b));
    });
  }
};

void gradient(GradientContext& c) {
  gradient_recurrent(c, "rnn");
}

}  // namespace

extern const OpDef op_rnn = {
    .name = "RNN",
    .inputs = {3, 6},
    .outputs = {0, 2},
    .attrs = attrs,
    .infer = infer_recurrent,
    .select = select_recurrent,
    .pack = pack_recurrent,
    .run = run_recurrent<RnnStep>,
    .cost = cost_recurrent,
    .gradient = gradient,
};

}  // namespace plimsoll
