// RecurrentGradient(P, R, R's last bias, h0, c0, dY, dY_h, dY_c): back through the time of LSTM, GRU and RNN,
// as `cell` says. P [directions, steps, batch, gates * hidden] is what goes into the gates besides the state.
// Outputs: dP; the states before each step; dh0; then LSTM's dc0, or GRU's gradient of what the state gives
// to the gates, and the reset states if not `linear_before_reset`. The rest are products of matrices around
// it (recurrent_gradient.h). Gates and states are computed anew.
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
  bool reverse = false, linear_before_reset = false, relu = false;
  int64_t gates() const { return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1; }
};

constexpr size_t kP = 0, kR = 1, kLastBias = 2, kH0 = 3, kC0 = 4, kGradient = 5, kLastH = 6, kLastC = 7;
constexpr size_t kToP = 0, kStates = 1, kToH0 = 2, kToC0 = 3, kToR = 3, kReset = 4;

const void* attrs(AttrContext& c) {
  auto* a = c.make<Attrs>();
  const std::string_view cell = c.text("cell");
  if (cell != "lstm" && cell != "gru" && cell != "rnn")
    c.reject("attribute 'cell': expected lstm, gru or rnn, found '{}'", cell);
  a->cell = cell == "lstm" ? Cell::kLstm : cell == "gru" ? Cell::kGru : Cell::kRnn;
  a->reverse = c.integer("reverse", 0) != 0;
  a->linear_before_reset = c.integer("linear_before_reset", 0) != 0;
  a->relu = c.integer("relu", 0) != 0;
  return a;
}

// run writes all outputs of its cell, and no other.
void check_outputs(const InferContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const size_t expected = a.cell == Cell::kRnn                             ? kToH0 + 1
                          : a.cell == Cell::kGru && !a.linear_before_reset ? kReset + 1
                                                                           : kToR + 1;
  if (c.output_count() != expected) c.reject("expected {} outputs, found {}", expected, c.output_count());
  for (size_t i = 0; i < expected; ++i) {
    if (!c.has_output(i)) c.reject("output {} is missing", i);
  }
}

void infer(InferContext& c) {
  c.expect_type(kP, types(ElementType::kFloat, ElementType::kDouble));
  for (size_t i = 1; i < c.input_count(); ++i) {
    if (c.has_input(i)) c.expect_same_type(kP, i);
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
  const ElementType type = c.type(kP);
  c.set_output(kToP, type, p);
  c.set_output(kStates, type, states);
  c.set_output(kToH0, type, state);
  if (c.attrs<Attrs>().cell == Cell::kLstm) return c.set_output(kToC0, type, state);
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
    pack();
  }

  void run() {
    start(kH0, h_);
    if (a_.cell == Cell::kLstm) start(kC0, cells_);
    for (int64_t k = 0; k < steps_; ++k) forward(k);
    T *dh = c_.scratch_as<T>(choice_.dh_at), *dc = c_.scratch_as<T>(choice_.dc_at);
    start(kLastH, dh);
    start(kLastC, dc);
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

  void activate(bool tanh, T* x) const { apply_gate({tanh ? Gate::kTanh : Gate::kSigmoid}, x, n_); }

  void forward(int64_t k) {
    const T* h = h_ + k * state();
    T *gates = gates_ + k * batch_ * width_, *next = h_ + (k + 1) * state();
    std::copy_n(c_.inputs[kP].as<T>() + (d_ * steps_ + time(k)) * batch_ * width_, batch_ * width_, gates);
    std::copy_n(h, state(), of_step(kStates, k, n_));
    multiply(h, n_, n_, c_.scratch + choice_.forward_at, gates, width_, joint_, true);
    for (int64_t b = 0; a_.cell == Cell::kGru && b < batch_; ++b) {
      activate(false, gates + b * width_);
      activate(false, gates + b * width_ + n_);
    }
    if (a_.cell == Cell::kGru) share_of_state(k, gates, h);
    for (int64_t b = 0; b < batch_; ++b) step(k, gates + b * width_, h + b * n_, next + b * n_, b);
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
      if (a_.relu) {
        apply_gate({Gate::kRelu}, g, n_);
      } else {
        activate(true, g);
      }
      std::copy_n(g, n_, next);
    } else if (a_.cell == Cell::kGru) {
      activate(true, g + 2 * n_);
      for (int64_t j = 0; j < n_; ++j) next[j] = (1 - g[j]) * g[2 * n_ + j] + g[j] * h[j];
    } else {
      for (int64_t gate = 0; gate < 4; ++gate) activate(gate == 3, g + gate * n_);
      const T* cell = cells_ + k * state() + b * n_;
      T* cell_after = cells_ + (k + 1) * state() + b * n_;
      for (int64_t j = 0; j < n_; ++j)
        next[j] = cell_after[j] = g[2 * n_ + j] * cell[j] + g[j] * g[3 * n_ + j];
      activate(true, next);
      for (int64_t j = 0; j < n_; ++j) next[j] *= g[n_ + j];
    }
  }

  void backward(int64_t k, T* dh, T* dc) {
    T* dp = of_step(kToP, k, width_);
    if (c_.has_input(kGradient)) {
      const int64_t directions = c_.inputs[kP].dims[0];
      const T* dy = c_.inputs[kGradient].as<T>() + (time(k) * directions + d_) * state();
      for (int64_t i = 0; i < state(); ++i) dh[i] += dy[i];
    }
    if (a_.cell == Cell::kGru) return backward_gru(k, dp, dh);
    for (int64_t b = 0; b < batch_; ++b) {
      const T* g = gates_ + k * batch_ * width_ + b * width_;
      if (a_.cell == Cell::kLstm) {
        backward_lstm(g, cells_ + k * state() + b * n_, cells_ + (k + 1) * state() + b * n_, dp + b * width_,
                      dh + b * n_, dc + b * n_);
      } else {
        for (int64_t j = 0; j < n_; ++j)
          dp[b * n_ + j] = dh[b * n_ + j] * (a_.relu ? (g[j] > 0 ? T{1} : T{0}) : 1 - g[j] * g[j]);
      }
    }
    multiply(dp, width_, joint_, c_.scratch + choice_.backward_at, dh, n_, n_, false);
  }

  void backward_lstm(const T* g, const T* cell, const T* cell_after, T* dp, const T* dh, T* dc) const {
    for (int64_t j = 0; j < n_; ++j) {
      const T i = g[j], o = g[n_ + j], f = g[2 * n_ + j], candidate = g[3 * n_ + j];
      const T out = std::tanh(cell_after[j]), change = dc[j] + dh[j] * o * (1 - out * out);
      dp[j] = change * candidate * i * (1 - i);
      dp[n_ + j] = dh[j] * out * o * (1 - o);
      dp[2 * n_ + j] = change * cell[j] * f * (1 - f);
      dp[3 * n_ + j] = change * i * (1 - candidate * candidate);
      dc[j] = change * f;
    }
  }

  // dh becomes that of the state before; dr is what the state's share in the gates receives.
  void backward_gru(int64_t k, T* dp, T* dh) const {
    const T *gates = gates_ + k * batch_ * width_, *h = h_ + k * state(), *q = cells_ + k * state();
    T *dr = of_step(kToR, k, width_), *work = c_.scratch_as<T>(choice_.work_at);
    const auto for_each = [&](auto f) {
      for (int64_t b = 0; b < batch_; ++b) {
        for (int64_t j = 0; j < n_; ++j) f(b * width_ + j, b * n_ + j);
      }
    };
    for_each([&](int64_t i, int64_t s) {
      const T z = gates[i], candidate = gates[i + 2 * n_];
      dp[i] = dh[s] * (h[s] - candidate) * z * (1 - z);
      dp[i + 2 * n_] = dh[s] * (1 - z) * (1 - candidate * candidate);
      dh[s] *= z;
    });
    if (!a_.linear_before_reset) multiply(dp + 2 * n_, width_, n_, rest_backward_, work, n_, n_, false);
    for_each([&](int64_t i, int64_t s) {
      const T r = gates[i + n_], last = dp[i + 2 * n_];
      const T change = a_.linear_before_reset ? last * q[s] : work[s] * h[s];
      if (!a_.linear_before_reset) dh[s] += work[s] * r;
      dp[i + n_] = change * r * (1 - r);
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
  T *gates_, *h_, *cells_;
  std::byte *rest_forward_ = nullptr, *rest_backward_ = nullptr;
};

void run(const RunContext& c) {
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
    .inputs = {2, 8},
    .outputs = {3, 5},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .cost = cost,
};

namespace {

// What every gradient of this family asks of the forward node.
void check(const GradientContext& c, const RecurrentAttrs& a, std::string_view cell) {
  const auto is = [&](size_t i, Gate kind) { return a.functions[i].kind == kind; };
  bool plain = a.clip == 0 && !a.input_forget && !a.batch_first && !c.has_input(kRecurrentLengths) &&
               !(cell == "lstm" && c.has_input(kRecurrentPeephole));
  for (size_t d = 0; d < static_cast<size_t>(a.directions); ++d) {
    const size_t first = d * a.kind->functions;
    if (cell == "rnn") {
      plain &= (is(first, Gate::kTanh) || is(first, Gate::kRelu)) && is(first, a.functions[0].kind);
    } else {
      plain &= is(first, Gate::kSigmoid) && is(first + 1, Gate::kTanh);
      if (cell == "lstm") plain &= is(first + 2, Gate::kTanh);
    }
  }
  if (!plain)
    c.reject(
        "its gradient knows neither layout 1, nor sequence_lens, clip, peepholes, input_forget, nor other "
        "activations than the default ones");
  if (c.type(kRecurrentX) != ElementType::kFloat && c.type(kRecurrentX) != ElementType::kDouble)
    c.reject("its gradient is for float and double");
  if (!c.ranked(kRecurrentX) || !c.ranked(kRecurrentR) || !c.dims(kRecurrentR)[2].is_constant())
    c.reject("its gradient needs to know the hidden size");
}

Edge* product(const GradientContext& c, Edge* a, Edge* b, bool trans_a, bool trans_b) {
  return c.own_op("FusedMatMul", {a, b},
                  c.attributes().set("trans_a", int64_t{trans_a}).set("trans_b", int64_t{trans_b}));
}

Edge* slice(const GradientContext& c, Edge* edge, int64_t begin, int64_t end) {
  return c.op("Slice", {edge, c.build.integers({begin}), c.build.integers({end}), c.build.integers({-1})});
}

}  // namespace

void gradient_recurrent(GradientContext& c, std::string_view cell) {
  const auto& a = c.attrs<RecurrentAttrs>();
  check(c, a, cell);
  const int64_t hidden = c.dims(kRecurrentR)[2].value(), gates = a.kind->gates, width = gates * hidden;
  const bool late = cell == "gru" && a.linear_before_reset, early = cell == "gru" && !late;
  Edge *x = c.in(kRecurrentX), *w = c.in(kRecurrentW), *last_bias = nullptr;
  Edge* rows = c.op("Flatten", {x}, c.attributes().set("axis", int64_t{2}));
  Edge* p = product(c, rows, w, false, true);  // [directions, steps * batch, width]
  if (c.has_input(kRecurrentB)) {
    Edge *b = c.in(kRecurrentB), *of_r = slice(c, b, width, 2 * width);
    if (late) {
      last_bias = slice(c, of_r, 2 * hidden, width);
      std::vector<float> joint(static_cast<size_t>(width), 0.0f);
      std::fill_n(joint.begin(), 2 * hidden, 1.0f);
      const int64_t dims[] = {width};
      of_r = c.op("Mul", {of_r, c.build.reals("joint", c.type(kRecurrentX), dims, joint)});
    }
    Edge* both = c.op("Add", {slice(c, b, 0, width), of_r});
    p = c.op("Add", {p, c.op("Unsqueeze", {both, c.build.integers({1})})});
  }
  Edge* sizes = c.op("Shape", {x}, c.attributes().set("start", int64_t{0}).set("end", int64_t{2}));
  Edge* shape = c.op("Concat", {c.build.integers({a.directions}), sizes, c.build.integers({width})},
                     c.attributes().set("axis", int64_t{0}));
  p = c.op("Reshape", {p, shape});
  Edge* c0 = cell == "lstm" ? c.in(kRecurrentInitialC) : nullptr;
  Edge* const inputs[] = {p,  c.in(kRecurrentR), last_bias,     c.in(kRecurrentInitialH),
                          c0, c.gradient(0),     c.gradient(1), cell == "lstm" ? c.gradient(2) : nullptr};
  const AttributeList attributes = c.attributes()
                                       .set("cell", cell)
                                       .set("reverse", int64_t{a.reverse})
                                       .set("linear_before_reset", int64_t{late})
                                       .set("relu", int64_t{a.functions[0].kind == Gate::kRelu});
  const Node* node = c.build.emit(kPlimsollDomain, "RecurrentGradient", inputs, attributes.list(),
                                  cell == "lstm" || late ? 4
                                  : early                ? 5
                                                         : 3);
  const auto flat = [&](Edge* edge, int64_t last) {
    return c.op("Reshape", {edge, c.build.integers({0, -1, last})});
  };
  Edge *dp = flat(node->outputs[kToP], width), *dr = cell == "gru" ? flat(node->outputs[kToR], width) : dp;
  if (c.wants(kRecurrentX)) {
    Edge* dx = c.op("ReduceSum", {product(c, dp, w, false, false), c.build.integers({0})},
                    c.attributes().set("keepdims", int64_t{0}));
    c.set(kRecurrentX, c.op("Reshape", {dx, c.shape_of(x)}));
  }
  if (c.wants(kRecurrentW)) c.set(kRecurrentW, product(c, dp, rows, true, false));
  Edge* states = flat(node->outputs[kStates], hidden);
  if (c.wants(kRecurrentR) && early) {
    Edge* joint = product(c, slice(c, dr, 0, 2 * hidden), states, true, false);
    Edge* last =
        product(c, slice(c, dr, 2 * hidden, width), flat(node->outputs[kReset], hidden), true, false);
    c.set(kRecurrentR, c.op("Concat", {joint, last}, c.attributes().set("axis", int64_t{1})));
  } else if (c.wants(kRecurrentR)) {
    c.set(kRecurrentR, product(c, dr, states, true, false));
  }
  if (c.wants(kRecurrentB)) {
    const auto sum = [&](Edge* edge) {
      return c.op("ReduceSum", {edge, c.build.integers({1})}, c.attributes().set("keepdims", int64_t{0}));
    };
    c.set(kRecurrentB, c.op("Concat", {sum(dp), sum(dr)}, c.attributes().set("axis", int64_t{1})));
  }
  c.set(kRecurrentInitialH, node->outputs[kToH0]);
  if (cell == "lstm") c.set(kRecurrentInitialC, node->outputs[kToC0]);
}

}  // namespace plimsoll
