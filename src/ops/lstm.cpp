// ht = ot * h(ct), ct = ft * ct-1 + it * ct~; gates in the order i, o, f, c.
#include "ops/recurrent_gradient.h"
#include "ops/recurrent_run.h"

namespace plimsoll {
namespace {

constexpr RecurrentKind kLstm = {4, 4, 3, {"sigmoid", "tanh", "tanh"}, true};

const void* attrs(AttrContext& c) {
  return recurrent_attrs(c, kLstm);
}

template <typename Number>
struct LstmStep {
  using Run = RecurrentRun<Number>;

  template <typename IsActive>
  void advance(Run& run, int64_t d, Number* gates, int64_t width, IsActive is_active) {
    run.multiply_by_r(d, run.h(0), 0, 4, gates, width, true);
    run.each_sequence([&](int64_t b) {
      if (is_active(b)) next(run, d, gates + b * width, run.h(b), run.cell(b));
    });
  }

  static void add_peephole(const Run& run, int64_t gate, const Number* cell, Number* x) {
    if (!run.context().has_input(kRecurrentPeephole)) return;
    const Number* weights = run.peephole(gate);
    for (int64_t j = 0; j < run.hidden(); ++j) x[j] += weights[j] * cell[j];
  }

  static void next(const Run& run, int64_t d, Number* gates, Number* h, Number* cell) {
    const int64_t n = run.hidden();
    Number *i = gates, *o = gates + n, *f = gates + 2 * n, *candidate = gates + 3 * n;
    add_peephole(run, 0, cell, i);
    run.activate(run.function(d, 0), i);
    if (run.attrs().input_forget) {
      for (int64_t j = 0; j < n; ++j) f[j] = 1 - i[j];
    } else {
      add_peephole(run, 2, cell, f);
      run.activate(run.function(d, 0), f);
    }
    run.activate(run.function(d, 1), candidate);
    for (int64_t j = 0; j < n; ++j) h[j] = cell[j] = f[j] * cell[j] + i[j] * candidate[j];
    add_peephole(run, 1, cell, o);
    run.activate(run.function(d, 0), o);
    apply_gate(run.function(d, 2), h, n);
    for (int64_t j = 0; j < n; ++j) h[j] *= o[j];
  }
};

void gradient(GradientContext& c) {
  gradient_recurrent(c, "lstm");
}

}  // namespace

extern const OpDef op_lstm = {
    .name = "LSTM",
    .inputs = {3, 8},
    .outputs = {0, 3},
    .attrs = attrs,
    .infer = infer_recurrent,
    .select = select_recurrent,
    .pack = pack_recurrent,
    .run = run_recurrent<LstmStep>,
    .cost = cost_recurrent,
    .gradient = gradient,
};

}  // namespace plimsoll
