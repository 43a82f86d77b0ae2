// RecurrentGradient(P, R, R's last bias, h0, c0, dY, dY_h, dY_c, peepholes, lengths): back through the time
// of LSTM, GRU and RNN, as `cell` says. P [directions, steps, batch, gates * hidden] is what goes into the
// gates besides the state. Outputs: dP; the states before each step; dh0; then LSTM's dc0, and the gradient
// of its peepholes if there are any, or GRU's gradient of what the state gives to the gates, and the reset
// states if not `linear_before_reset`. The rest are products of matrices around it (recurrent_gradient.h).
// Gates and states are computed anew.
#include "ops/recurrent_gradient.h"

#include <algorithm>
#include <cmath>

#include "kernels/gemm.h"
#include "ops/float_blocks.h"
#include "ops/movement.h"
#include "ops/recurrent_run.h"

namespace plimsoll {
namespace {

enum class Cell : uint8_t { kLstm, kGru, kRnn };

struct Attrs {
  Cell cell = Cell::kLstm;
  bool reverse = false, linear_before_reset = false, input_forget = false;
  float clip = 0;             // 0: none
  GateFunction functions[6];  // of each direction as many as the cell has
  size_t function_count() const { return cell == Cell::kLstm ? 3 : cell == Cell::kGru ? 2 : 1; }
  int64_t gates() const { return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1; }
};

constexpr size_t kP = 0, kR = 1, kLastBias = 2, kH0 = 3, kC0 = 4, kGradient = 5, kLastH = 6, kLastC = 7,
                 kPeephole = 8, kLengths = 9;

// Kinds, alphas and betas of all functions of all directions; none: the cell's own.
void read_functions(AttrContext& c, Attrs& a) {
  constexpr Gate kDefaults[3] = {Gate::kSigmoid, Gate::kTanh, Gate::kTanh};
  const size_t each = a.function_count();
  for (size_t i = 0; i < std::size(a.functions); ++i)
    a.functions[i].kind = a.cell == Cell::kRnn ? Gate::kTanh : kDefaults[i % each];
  const auto kinds = c.integers("functions");
  const auto alphas = c.reals("alphas"), betas = c.reals("betas");
  const bool fits = (kinds.empty() || kinds.size() == each || kinds.size() == 2 * each) &&
                    alphas.size() == kinds.size() && betas.size() == kinds.size();
  if (!fits)
    c.reject("expected as many functions, alphas and betas as gates, found {}, {} and {}", kinds.size(),
             alphas.size(), betas.size());
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] < 0 || kinds[i] > static_cast<int64_t>(Gate::kSoftplus))
      c.reject("attribute 'functions': {} is none", kinds[i]);
    a.functions[i] = {static_cast<Gate>(kinds[i]), alphas[i], betas[i]};
  }
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<Attrs>();
  const std::string_view cell = c.text("cell");
  if (cell != "lstm" && cell != "gru" && cell != "rnn")
    c.reject("attribute 'cell': expected lstm, gru or rnn, found '{}'", cell);
  a->cell = cell == "lstm" ? Cell::kLstm : cell == "gru" ? Cell::kGru : Cell::kRnn;
  a->reverse = c.integer("reverse", 0) != 0;
  a->linear_before_reset = c.integer("linear_before_reset", 0) != 0;
  a->input_forget = c.integer("input_forget", 0) != 0;
  a->clip = c.real("clip", 0.0f);
  read_functions(c, *a);
  return a;
}

// run writes all outputs of its cell, and no other.
void check_outputs(const InferContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const size_t expected = a.cell == Cell::kRnn                              ? kToH0 + 1
                          : a.cell == Cell::kGru && !a.linear_before_reset  ? kReset + 1
                          : a.cell == Cell::kLstm && c.has_input(kPeephole) ? kToPeephole + 1
                                                                            : kToR + 1;
  if (c.output_count() != expected) c.reject("expected {} outputs, found {}", expected, c.output_count());
  for (size_t i = 0; i < expected; ++i) {
    if (!c.has_output(i)) c.reject("output {} is missing", i);
  }
}

void infer(InferContext& c) {
  c.expect_type(kP, types(ElementType::kFloat, ElementType::kDouble));
  for (size_t i = 1; i < c.input_count(); ++i) {
    if (!c.has_input(i)) continue;
    if (i == kLengths) {
      c.expect_type(i, types(ElementType::kInt32));
    } else {
      c.expect_same_type(kP, i);
    }
  }
  c.expect_rank(kP, 4, 4);
  c.expect_rank(kR, 3, 3);
  if (!c.ranked(kP) || !c.ranked(kR)) c.reject("expected known ranks");
  const auto p = c.dims(kP);
  const Dim hidden = c.dims(kR)[2];
  const std::vector<Dim> states{p[0], p[1], p[2], hidden}, state{p[0], p[2], hidden};
  check_outputs(c);
  if (p[0].is_constant() && p[0].value() != 1 && p[0].value() != 2)
    c.reject("expected one direction or two, found {}", p[0].value());
  if (hidden.is_constant() && hidden.value() < 1) c.reject("R has shape {}", to_string(c.dims(kR)));
  const Dim width = hidden * Dim(c.attrs<Attrs>().gates());
  expect_dims(c, kP, {p[0], p[1], p[2], width});
  expect_dims(c, kR, {p[0], width, hidden});
  expect_dims(c, kLastBias, {p[0], hidden});
  expect_dims(c, kGradient, {p[1], p[0], p[2], hidden});
  for (size_t i : {kH0, kC0, kLastH, kLastC}) expect_dims(c, i, state);
  expect_dims(c, kPeephole, {p[0], hidden * Dim(3)});
  expect_dims(c, kLengths, {p[2]});
  const ElementType type = c.type(kP);
  c.set_output(kToP, type, p);
  c.set_output(kStates, type, states);
  c.set_output(kToH0, type, state);
  if (c.attrs<Attrs>().cell == Cell::kLstm) {
    c.set_output(kToC0, type, state);
    return c.set_output(kToPeephole, type, {p[0], hidden * Dim(3)});
  }
  c.set_output(kToR, type, p);
  c.set_output(kReset, type, states);
}

struct Choice {
  int64_t forward_at = 0, backward_at = 0, gates_at = 0, h_at = 0, c_at = 0, dh_at = 0, dc_at = 0,
          work_at = 0, gemm_at = 0;
};

template <typename Number>
void select_as(SelectContext& c, Choice& choice) {
  const auto p = c.dims(kP);
  const Dim hidden = c.dims(kR)[2], number = int64_t{sizeof(Number)};
  const Dim steps = p[1], batch = p[2], state = batch * hidden * number;
  int64_t packed = 0, working = 0;
  if (hidden.is_constant()) {
    const int64_t n = hidden.value(), all = c.attrs<Attrs>().gates() * n;
    packed = static_cast<int64_t>(kernels::packed_b_bytes<Number>(n, all) + 64);
    packed = std::max(packed, static_cast<int64_t>(kernels::packed_b_bytes<Number>(all, n) + 64)) + all * n;
    working = static_cast<int64_t>(std::max(kernels::gemm_most_scratch_bytes<Number>(n, c.threads),
                                            kernels::gemm_most_scratch_bytes<Number>(all, c.threads)));
  }
  choice.forward_at = c.scratch(2 * packed);
  choice.backward_at = c.scratch(2 * packed);
  choice.gates_at = c.scratch(steps * batch * p[3] * number);
  choice.h_at = c.scratch((steps + 1) * state);
  choice.c_at = c.scratch((steps + 1) * state);
  choice.dh_at = c.scratch(state);
  choice.dc_at = c.scratch(state);
  choice.work_at = c.scratch(state);
  choice.gemm_at = c.scratch(working);
}

const void* select(SelectContext& c) {
  auto* choice = c.make<Choice>();
  if (c.type(kP) == ElementType::kDouble) {
    select_as<double>(c, *choice);
  } else {
    select_as<float>(c, *choice);
  }
  return choice;
}

// How fast a function changes, from what it gives.
template <typename T>
T slope(const GateFunction& f, T y) {
  const auto alpha = static_cast<T>(f.alpha), beta = static_cast<T>(f.beta);
  switch (f.kind) {
    case Gate::kSigmoid:
      return y * (1 - y);
    case Gate::kTanh:
      return 1 - y * y;
    case Gate::kRelu:
      return y > 0 ? T{1} : T{0};
    case Gate::kAffine:
      return alpha;
    case Gate::kLeakyRelu:
      return y >= 0 ? T{1} : alpha;
    case Gate::kThresholdedRelu:
      return y != 0 ? T{1} : T{0};
    case Gate::kScaledTanh:
      return beta * (alpha - y * y / alpha);
    case Gate::kHardSigmoid:
      return y > 0 && y < 1 ? alpha : T{0};
    case Gate::kElu:
      return y > 0 ? T{1} : y + alpha;
    case Gate::kSoftsign:
      return (1 - std::abs(y)) * (1 - std::abs(y));
    case Gate::kSoftplus:
      return 1 - std::exp(-y);
  }
  return 0;
}

// A function of the gates behind the clip, if there is one.
template <typename T>
struct ClippedGate {
  GateFunction function;
  T clip = 0, low = 0, high = 0;  // what it gives at both ends

  void set(const GateFunction& f, float most) {
    function = f, clip = static_cast<T>(most);
    T ends[] = {-clip, clip};
    apply_gate(f, ends, 2);
    low = std::min(ends[0], ends[1]), high = std::max(ends[0], ends[1]);
  }
  void apply(T* x, int64_t count) const {
    for (int64_t j = 0; clip > 0 && j < count; ++j) x[j] = std::clamp(x[j], -clip, clip);
    apply_gate(function, x, count);
  }
  T slope_at(T y) const { return clip > 0 && (y <= low || y >= high) ? T{0} : slope(function, y); }
};

// One direction. Matrices [batch, gates, hidden] and [batch, hidden]; those of GRU are in the order z, r, h,
// those of LSTM i, o, f, c.
template <typename T>
class BackThroughTime {
 public:
  BackThroughTime(const RunContext& c, int64_t d)
      : c_(c), a_(c.attrs<Attrs>()), choice_(c.choice<Choice>()), d_(d) {
    const auto p = c.inputs[kP].dims;
    steps_ = p[1], batch_ = p[2], width_ = p[3], n_ = c.inputs[kR].dims[2];
    joint_ = a_.cell == Cell::kGru ? 2 * n_ : width_;
    backwards_ = d == 1 || a_.reverse;
    gates_ = c.scratch_as<T>(choice_.gates_at), h_ = c.scratch_as<T>(choice_.h_at);
    // Of GRU: what R gives to the last gate, where it comes before the reset.
    cells_ = c.scratch_as<T>(choice_.c_at);
    for (size_t i = 0; i < a_.function_count(); ++i)
      functions_[i].set(a_.functions[static_cast<size_t>(d) * a_.function_count() + i], a_.clip);
    pack();
  }

  void run() {
    start(kH0, h_);
    if (a_.cell == Cell::kLstm) start(kC0, cells_);
    for (int64_t k = 0; k < steps_; ++k) forward(k);
    T *dh = c_.scratch_as<T>(choice_.dh_at), *dc = c_.scratch_as<T>(choice_.dc_at);
    start(kLastH, dh);
    start(kLastC, dc);
    if (c_.has_input(kPeephole)) std::fill_n(of_peephole(), 3 * n_, T{0});
    for (int64_t k = steps_; k-- > 0;) backward(k, dh, dc);
    std::copy_n(dh, state(), c_.outputs[kToH0].as<T>() + d_ * state());
    if (a_.cell == Cell::kLstm) std::copy_n(dc, state(), c_.outputs[kToC0].as<T>() + d_ * state());
  }

 private:
  int64_t state() const { return batch_ * n_; }
  int64_t time(int64_t k) const { return backwards_ ? steps_ - 1 - k : k; }
  T* of_step(size_t output, int64_t k, int64_t width) const {
    return c_.outputs[output].as<T>() + (d_ * steps_ + time(k)) * batch_ * width;
  }
  // Past its length a sequence keeps its state.
  bool is_active(int64_t k, int64_t b) const {
    return !c_.has_input(kLengths) || time(k) < c_.inputs[kLengths].as<int32_t>()[b];
  }
  const T* peephole() const {
    return c_.has_input(kPeephole) ? c_.inputs[kPeephole].as<T>() + d_ * 3 * n_ : nullptr;
  }
  T* of_peephole() const { return c_.outputs[kToPeephole].as<T>() + d_ * 3 * n_; }
  void start(size_t input, T* to) const {
    if (c_.has_input(input)) {
      std::copy_n(c_.inputs[input].as<T>() + d_ * state(), state(), to);
    } else {
      std::fill_n(to, state(), T{0});
    }
  }

  // R's rows that are joint, and the others, each for both ways.
  void pack() {
    const T* r = c_.inputs[kR].as<T>() + d_ * width_ * n_;
    std::byte *forward = c_.scratch + choice_.forward_at, *backward = c_.scratch + choice_.backward_at;
    kernels::pack_b<T>(n_, joint_, {r, 1, n_}, forward);
    kernels::pack_b<T>(joint_, n_, {r, n_, 1}, backward);
    rest_forward_ = forward + kernels::packed_b_bytes<T>(n_, joint_);
    rest_backward_ = backward + kernels::packed_b_bytes<T>(joint_, n_);
    if (joint_ == width_) return;
    kernels::pack_b<T>(n_, n_, {r + joint_ * n_, 1, n_}, rest_forward_);
    kernels::pack_b<T>(n_, n_, {r + joint_ * n_, n_, 1}, rest_backward_);
  }

  // to += or = from * packed
  void multiply(const T* from, int64_t from_stride, int64_t k, const std::byte* packed, T* to,
                int64_t to_stride, int64_t columns, bool adds) const {
    kernels::GemmEpilogue<T> e;
    if (adds) e.addend = to, e.addend_stride = to_stride;
    kernels::gemm_packed_as<T>({batch_, k, columns}, {from, from_stride, 1}, packed, {to, to_stride}, e,
                               c_.scratch + choice_.gemm_at, c_.threads);
  }

  void activate(size_t function, T* x) const { functions_[function].apply(x, n_); }

  void forward(int64_t k) {
    const T* h = h_ + k * state();
    T *gates = gates_ + k * batch_ * width_, *next = h_ + (k + 1) * state();
    std::copy_n(c_.inputs[kP].as<T>() + (d_ * steps_ + time(k)) * batch_ * width_, batch_ * width_, gates);
    std::copy_n(h, state(), of_step(kStates, k, n_));
    multiply(h, n_, n_, c_.scratch + choice_.forward_at, gates, width_, joint_, true);
    for (int64_t b = 0; a_.cell == Cell::kGru && b < batch_; ++b) {
      activate(0, gates + b * width_);
      activate(0, gates + b * width_ + n_);
    }
    if (a_.cell == Cell::kGru) share_of_state(k, gates, h);
    for (int64_t b = 0; b < batch_; ++b) {
      if (is_active(k, b)) {
        step(k, gates + b * width_, h + b * n_, next + b * n_, b);
      } else {
        std::copy_n(h + b * n_, n_, next + b * n_);
        if (a_.cell == Cell::kLstm)
          std::copy_n(cells_ + k * state() + b * n_, n_, cells_ + (k + 1) * state() + b * n_);
      }
    }
  }

  // Into GRU's last gate.
  void share_of_state(int64_t k, T* gates, const T* h) const {
    T* q = cells_ + k * state();
    if (a_.linear_before_reset) {
      multiply(h, n_, n_, rest_forward_, q, n_, n_, false);
    } else {
      for (int64_t b = 0; b < batch_; ++b) {
        for (int64_t j = 0; j < n_; ++j) q[b * n_ + j] = gates[b * width_ + n_ + j] * h[b * n_ + j];
      }
      std::copy_n(q, state(), of_step(kReset, k, n_));
      return multiply(q, n_, n_, rest_forward_, gates + 2 * n_, width_, n_, true);
    }
    const T* bias = c_.has_input(kLastBias) ? c_.inputs[kLastBias].as<T>() + d_ * n_ : nullptr;
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t j = 0; j < n_; ++j) {
        if (bias != nullptr) q[b * n_ + j] += bias[j];
        gates[b * width_ + 2 * n_ + j] += gates[b * width_ + n_ + j] * q[b * n_ + j];
      }
    }
  }

  void step(int64_t k, T* g, const T* h, T* next, int64_t b) const {
    if (a_.cell == Cell::kRnn) {
      activate(0, g);
      std::copy_n(g, n_, next);
    } else if (a_.cell == Cell::kGru) {
      activate(1, g + 2 * n_);
      for (int64_t j = 0; j < n_; ++j) next[j] = (1 - g[j]) * g[2 * n_ + j] + g[j] * h[j];
    } else {
      step_lstm(g, cells_ + k * state() + b * n_, cells_ + (k + 1) * state() + b * n_, next);
    }
  }

  void step_lstm(T* g, const T* cell, T* cell_after, T* next) const {
    const T* w = peephole();
    const auto look = [&](int64_t gate, const T* at) {
      for (int64_t j = 0; w != nullptr && j < n_; ++j) g[gate * n_ + j] += w[gate * n_ + j] * at[j];
    };
    look(0, cell);
    activate(0, g);
    if (a_.input_forget) {
      for (int64_t j = 0; j < n_; ++j) g[2 * n_ + j] = 1 - g[j];
    } else {
      look(2, cell);
      activate(0, g + 2 * n_);
    }
    activate(1, g + 3 * n_);
    for (int64_t j = 0; j < n_; ++j) next[j] = cell_after[j] = g[2 * n_ + j] * cell[j] + g[j] * g[3 * n_ + j];
    look(1, cell_after);
    activate(0, g + n_);
    apply_gate(functions_[2].function, next, n_);
    for (int64_t j = 0; j < n_; ++j) next[j] *= g[n_ + j];
  }

  void backward(int64_t k, T* dh, T* dc) {
    T* dp = of_step(kToP, k, width_);
    if (c_.has_input(kGradient)) {
      const int64_t directions = c_.inputs[kP].dims[0];
      const T* dy = c_.inputs[kGradient].as<T>() + (time(k) * directions + d_) * state();
      for (int64_t b = 0; b < batch_; ++b) {
        for (int64_t i = b * n_; is_active(k, b) && i < (b + 1) * n_; ++i) dh[i] += dy[i];
      }
    }
    if (a_.cell == Cell::kGru) return backward_gru(k, dp, dh);
    T* work = c_.scratch_as<T>(choice_.work_at);
    for (int64_t b = 0; b < batch_; ++b) {
      const T* g = gates_ + k * batch_ * width_ + b * width_;
      if (!is_active(k, b)) {
        std::fill_n(dp + b * width_, width_, T{0});
        std::copy_n(dh + b * n_, n_, work + b * n_);
      } else if (a_.cell == Cell::kLstm) {
        backward_lstm(g, cells_ + k * state() + b * n_, cells_ + (k + 1) * state() + b * n_, dp + b * width_,
                      dh + b * n_, dc + b * n_, work + b * n_);
      } else {
        for (int64_t j = 0; j < n_; ++j) dp[b * n_ + j] = dh[b * n_ + j] * functions_[0].slope_at(g[j]);
      }
    }
    multiply(dp, width_, joint_, c_.scratch + choice_.backward_at, dh, n_, n_, false);
    for (int64_t b = 0; b < batch_; ++b) {
      if (!is_active(k, b)) std::copy_n(work + b * n_, n_, dh + b * n_);
    }
  }

  // With room for a state in `out`.
  void backward_lstm(const T* g, const T* cell, const T* cell_after, T* dp, const T* dh, T* dc,
                     T* out) const {
    std::copy_n(cell_after, n_, out);
    apply_gate(functions_[2].function, out, n_);
    const T* w = peephole();
    for (int64_t j = 0; j < n_; ++j) {
      const T i = g[j], o = g[n_ + j], f = g[2 * n_ + j], candidate = g[3 * n_ + j];
      dp[n_ + j] = dh[j] * out[j] * functions_[0].slope_at(o);
      const T change = dc[j] + dh[j] * o * slope(functions_[2].function, out[j]) +
                       (w != nullptr ? dp[n_ + j] * w[n_ + j] : T{0});
      const T of_input = change * (a_.input_forget ? candidate - cell[j] : candidate);
      dp[j] = of_input * functions_[0].slope_at(i);
      dp[2 * n_ + j] = a_.input_forget ? T{0} : change * cell[j] * functions_[0].slope_at(f);
      dp[3 * n_ + j] = change * i * functions_[1].slope_at(candidate);
      dc[j] = change * f;
      if (w == nullptr) continue;
      dc[j] += dp[j] * w[j] + dp[2 * n_ + j] * w[2 * n_ + j];
      T* dw = of_peephole();
      dw[j] += dp[j] * cell[j];
      dw[n_ + j] += dp[n_ + j] * cell_after[j];
      dw[2 * n_ + j] += dp[2 * n_ + j] * cell[j];
    }
  }

  // dh becomes that of the state before; dr is what the state's share in the gates receives.
  void backward_gru(int64_t k, T* dp, T* dh) const {
    const T *gates = gates_ + k * batch_ * width_, *h = h_ + k * state(), *q = cells_ + k * state();
    T *dr = of_step(kToR, k, width_), *work = c_.scratch_as<T>(choice_.work_at);
    const auto for_each = [&](auto f) {
      for (int64_t b = 0; b < batch_; ++b) {
        for (int64_t j = 0; is_active(k, b) && j < n_; ++j) f(b * width_ + j, b * n_ + j);
      }
    };
    for (int64_t b = 0; b < batch_; ++b) {
      if (is_active(k, b)) continue;
      std::fill_n(dp + b * width_, width_, T{0});
      std::fill_n(dr + b * width_, width_, T{0});
    }
    for_each([&](int64_t i, int64_t s) {
      const T z = gates[i], candidate = gates[i + 2 * n_];
      dp[i] = dh[s] * (h[s] - candidate) * functions_[0].slope_at(z);
      dp[i + 2 * n_] = dh[s] * (1 - z) * functions_[1].slope_at(candidate);
      dh[s] *= z;
    });
    if (!a_.linear_before_reset) multiply(dp + 2 * n_, width_, n_, rest_backward_, work, n_, n_, false);
    for_each([&](int64_t i, int64_t s) {
      const T r = gates[i + n_], last = dp[i + 2 * n_];
      const T change = a_.linear_before_reset ? last * q[s] : work[s] * h[s];
      if (!a_.linear_before_reset) dh[s] += work[s] * r;
      dp[i + n_] = change * functions_[0].slope_at(r);
      dr[i] = dp[i], dr[i + n_] = dp[i + n_];
      dr[i + 2 * n_] = a_.linear_before_reset ? last * r : last;
    });
    multiply(dp, width_, joint_, c_.scratch + choice_.backward_at, dh, n_, n_, true);
    if (a_.linear_before_reset) multiply(dr + 2 * n_, width_, n_, rest_backward_, dh, n_, n_, true);
  }

  const RunContext& c_;
  const Attrs& a_;
  const Choice& choice_;
  const int64_t d_;
  int64_t steps_, batch_, width_, n_, joint_;
  bool backwards_;
  ClippedGate<T> functions_[3];
  T *gates_, *h_, *cells_;
  std::byte *rest_forward_ = nullptr, *rest_backward_ = nullptr;
};

void check_lengths(const RunContext& c) {
  if (!c.has_input(kLengths)) return;
  const int64_t steps = c.inputs[kP].dims[1];
  for (int64_t b = 0; b < c.inputs[kLengths].elements(); ++b) {
    const int32_t length = c.inputs[kLengths].as<int32_t>()[b];
    if (length < 0 || length > steps)
      fail(ErrorCode::kInvalidArgument, "{}: sequence_lens[{}] is {}, expected 0 to {}", c.node->label(), b,
           length, steps);
  }
}

void run(const RunContext& c) {
  check_lengths(c);
  const int64_t directions = c.inputs[kP].dims[0];
  for (int64_t d = 0; d < directions; ++d) {
    if (c.inputs[kP].type == ElementType::kDouble) {
      BackThroughTime<double>(c, d).run();
    } else {
      BackThroughTime<float>(c, d).run();
    }
  }
}

Cost cost(const NodeContext& c) {
  const Dim all = product(c.dims(kP)) * c.dims(kR)[2] * Dim(4);
  return {all.is_constant() ? all.value() : 0, tensor_bytes(c)};
}

}  // namespace

extern const OpDef op_recurrent_gradient = {
    .domain = kPlimsollDomain,
    .name = "RecurrentGradient",
    .inputs = {2, 10},
    .outputs = {3, 5},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .cost = cost,
};

}  // namespace plimsoll
