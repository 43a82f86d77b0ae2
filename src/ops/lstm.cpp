// LSTM, all opsets: ht = ot * h(ct), ct = ft * ct-1 + it * ct~; gates in the order i, o, f, c.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "graph/op_def.h"
#include "kernels/gemm.h"

namespace plimsoll {
namespace {

enum class Gate : uint8_t {
  kSigmoid,
  kTanh,
  kRelu,
  kAffine,
  kLeakyRelu,
  kThresholdedRelu,
  kScaledTanh,
  kHardSigmoid,
  kElu,
  kSoftsign,
  kSoftplus
};

struct GateFunction {
  Gate kind = Gate::kSigmoid;
  float alpha = 0, beta = 0;
};

struct LstmAttrs {
  int64_t hidden = 0;
  int64_t directions = 1;
  bool reverse = false;  // of the first direction
  bool batch_first = false;
  bool input_forget = false;
  float clip = 0;  // 0: none
  GateFunction functions[6];
};

constexpr size_t kX = 0, kW = 1, kR = 2, kB = 3, kLengths = 4, kInitialH = 5, kInitialC = 6, kPeephole = 7;

struct GateName {
  const char* name;
  Gate kind;
  float alpha, beta;  // defaults of the specification
};
constexpr GateName kGates[] = {
    {"sigmoid", Gate::kSigmoid, 0, 0},
    {"tanh", Gate::kTanh, 0, 0},
    {"relu", Gate::kRelu, 0, 0},
    {"affine", Gate::kAffine, 1, 0},
    {"leakyrelu", Gate::kLeakyRelu, 0.01f, 0},
    {"thresholdedrelu", Gate::kThresholdedRelu, 1, 0},
    {"scaledtanh", Gate::kScaledTanh, 1, 1},
    {"hardsigmoid", Gate::kHardSigmoid, 0.2f, 0.5f},
    {"elu", Gate::kElu, 1, 0},
    {"softsign", Gate::kSoftsign, 0, 0},
    {"softplus", Gate::kSoftplus, 0, 0},
};

bool takes_alpha(Gate gate) {
  return gate != Gate::kSigmoid && gate != Gate::kTanh && gate != Gate::kRelu && gate != Gate::kSoftsign &&
         gate != Gate::kSoftplus;
}
bool takes_beta(Gate gate) {
  return gate == Gate::kAffine || gate == Gate::kScaledTanh || gate == Gate::kHardSigmoid;
}

void read_functions(AttrContext& c, LstmAttrs& a) {
  const auto names = c.texts("activations");
  const auto alphas = c.reals("activation_alpha"), betas = c.reals("activation_beta");
  const auto count = static_cast<size_t>(a.directions) * 3;
  if (!names.empty() && names.size() != count)
    c.reject("activations: expected {} names, found {}", count, names.size());
  size_t next_alpha = 0, next_beta = 0;
  for (size_t i = 0; i < count; ++i) {
    std::string name(names.empty() ? (i % 3 == 0 ? "sigmoid" : "tanh") : names[i]);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char ch) { return std::tolower(ch); });
    const auto* found =
        std::find_if(std::begin(kGates), std::end(kGates), [&](const GateName& g) { return name == g.name; });
    if (found == std::end(kGates)) c.reject("activations: '{}' is not known", name);
    a.functions[i] = {found->kind, found->alpha, found->beta};
    if (takes_alpha(found->kind) && next_alpha < alphas.size()) a.functions[i].alpha = alphas[next_alpha++];
    if (takes_beta(found->kind) && next_beta < betas.size()) a.functions[i].beta = betas[next_beta++];
  }
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<LstmAttrs>();
  a->hidden = c.integer("hidden_size", 0);
  const std::string_view direction = c.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    c.reject("direction: expected forward, reverse or bidirectional, found '{}'", direction);
  a->directions = direction == "bidirectional" ? 2 : 1;
  a->reverse = direction == "reverse";
  a->batch_first = c.integer("layout", 0) != 0;
  a->input_forget = c.integer("input_forget", 0) != 0;
  a->clip = c.real("clip", 0.0f);
  c.ignore("output_sequence");  // opset 1
  read_functions(c, *a);
  return a;
}

// Throws unless input i is absent or has these dimensions, as far as both are known.
void expect_dims(const InferContext& c, size_t i, const std::vector<Dim>& expected) {
  if (!c.has_input(i) || !c.ranked(i)) return;
  const auto found = c.dims(i);
  bool fits = found.size() == expected.size();
  for (size_t d = 0; fits && d < expected.size(); ++d)
    fits = !found[d].is_constant() || !expected[d].is_constant() || found[d] == expected[d];
  if (!fits) c.reject("input {}: expected shape {}, found {}", i, to_string(expected), to_string(found));
}

void infer(InferContext& c) {
  const auto& a = c.attrs<LstmAttrs>();
  c.expect_type(kX, kFloatTypes);
  for (size_t i : {kW, kR, kB, kInitialH, kInitialC, kPeephole}) {
    if (c.has_input(i)) c.expect_same_type(kX, i);
  }
  if (c.has_input(kLengths)) c.expect_type(kLengths, types(ElementType::kInt32));
  for (size_t i : {kW, kR}) {
    if (c.ranked(i)) c.expect_rank(i, 3, 3);
  }
  if (!c.ranked(kX) || !c.ranked(kR)) {
    for (size_t i = 0; i < 3; ++i) c.set_unranked_output(i, c.type(kX));
    return;
  }
  c.expect_rank(kX, 3, 3);
  const Dim hidden = c.dims(kR)[2], directions = a.directions;
  if (a.hidden != 0 && hidden.is_constant() && hidden.value() != a.hidden)
    c.reject("hidden_size is {}, but R has shape {}", a.hidden, to_string(c.dims(kR)));
  const Dim steps = c.dims(kX)[a.batch_first ? 1 : 0], batch = c.dims(kX)[a.batch_first ? 0 : 1];
  expect_dims(c, kW, {directions, hidden * Dim(4), c.dims(kX)[2]});
  expect_dims(c, kR, {directions, hidden * Dim(4), hidden});
  expect_dims(c, kB, {directions, hidden * Dim(8)});
  expect_dims(c, kLengths, {batch});
  expect_dims(c, kPeephole, {directions, hidden * Dim(3)});
  const std::vector<Dim> state = a.batch_first ? std::vector<Dim>{batch, directions, hidden}
                                               : std::vector<Dim>{directions, batch, hidden};
  expect_dims(c, kInitialH, state);
  expect_dims(c, kInitialC, state);
  c.set_output(0, c.type(kX),
               a.batch_first ? std::vector<Dim>{batch, steps, directions, hidden}
                             : std::vector<Dim>{steps, directions, batch, hidden});
  c.set_output(1, c.type(kX), state);
  c.set_output(2, c.type(kX), state);
}

float apply(const GateFunction& f, float x) {
  switch (f.kind) {
    case Gate::kSigmoid:
      return 1.0f / (1.0f + std::exp(-x));
    case Gate::kTanh:
      return std::tanh(x);
    case Gate::kRelu:
      return std::max(x, 0.0f);
    case Gate::kAffine:
      return f.alpha * x + f.beta;
    case Gate::kLeakyRelu:
      return x < 0 ? f.alpha * x : x;
    case Gate::kThresholdedRelu:
      return x >= f.alpha ? x : 0.0f;
    case Gate::kScaledTanh:
      return f.alpha * std::tanh(f.beta * x);
    case Gate::kHardSigmoid:
      return std::clamp(f.alpha * x + f.beta, 0.0f, 1.0f);
    case Gate::kElu:
      return x >= 0 ? x : f.alpha * (std::exp(x) - 1.0f);
    case Gate::kSoftsign:
      return x / (1.0f + std::fabs(x));
    case Gate::kSoftplus:
      return std::log1p(std::exp(x));
  }
  return x;
}

// W and R are packed as [k x 4 hidden] matrices, one direction after the other.
void packs(PackContext& c) {
  for (size_t i : {kW, kR}) {
    const Facts& facts = c.input(i);
    if (facts.constant == nullptr || c.node().inputs[i]->data == nullptr || c.type(i) != ElementType::kFloat)
      continue;
    const int64_t gates = facts.constant->dims[1], k = facts.constant->dims[2];
    c.request(i,
              checked_mul(facts.constant->dims[0], static_cast<int64_t>(kernels::packed_b_bytes(k, gates))));
  }
}

void pack_matrices(const TensorView& raw, std::byte* destination) {
  const int64_t gates = raw.dims[1], k = raw.dims[2];
  const auto bytes = static_cast<int64_t>(kernels::packed_b_bytes(k, gates));
  for (int64_t d = 0; d < raw.dims[0]; ++d)
    kernels::pack_b(k, gates, {raw.data + d * gates * k * 4, 1, k}, destination + d * bytes);
}

void pack(const NodeContext&, size_t, const TensorView& raw, std::byte* destination) {
  pack_matrices(raw, destination);
}

// Scratch, in order: gates [steps, batch, 4h], h and c [batch, h], X as floats in time order, then W and
// R where they are packed during the run.
struct Sizes {
  Dim gates, state, x, w, r;
};
Sizes sizes(const NodeContext& c) {
  const auto& a = c.attrs<LstmAttrs>();
  const auto x = c.dims(kX);
  const Dim steps = x[a.batch_first ? 1 : 0], batch = x[a.batch_first ? 0 : 1], hidden = c.dims(kR)[2];
  const Dim panel = kernels::packed_b_format(), gates = hidden * Dim(4);
  auto aligned = [](Dim floats) { return ceil_div(floats, Dim(16)) * Dim(16); };
  const Dim columns = ceil_div(gates, panel) * panel;
  return {aligned(steps * batch * gates), aligned(batch * hidden), aligned(steps * batch * x[2]),
          aligned(x[2] * columns) * Dim(a.directions), aligned(hidden * columns) * Dim(a.directions)};
}

// What the two products may need for rows of A; known once the shapes are.
Dim product_scratch(const NodeContext& c) {
  if (!c.input(kX).is_concrete() || !c.input(kR).is_concrete()) return 0;
  const int64_t rows = c.dims(kX)[0].value() * c.dims(kX)[1].value(), input = c.dims(kX)[2].value();
  const int64_t hidden = c.dims(kR)[2].value(),
                batch = c.dims(kX)[c.attrs<LstmAttrs>().batch_first ? 0 : 1].value();
  const size_t first = kernels::gemm_scratch_bytes({rows, input, 4 * hidden}, input, 1, 1);
  const size_t second = kernels::gemm_scratch_bytes({batch, hidden, 4 * hidden}, hidden, 1, 1);
  return static_cast<int64_t>(std::max(first, second));
}

void select(SelectContext& c) {
  if (!c.ranked(kX) || !c.ranked(kR)) return;
  const Sizes s = sizes(c);
  Dim floats = s.gates + s.state * Dim(2) + s.x;
  if (!c.packed(kW)) floats = floats + s.w;
  if (!c.packed(kR)) floats = floats + s.r;
  c.scratch_bytes = floats * Dim(4) + product_scratch(c);
}

const void* bind(BindContext& c) {
  const Sizes s = sizes(c);
  auto* bound = c.make<std::array<int64_t, 5>>();
  *bound = {s.gates.value(), s.state.value(), s.x.value(), s.w.value(), s.r.value()};
  return bound;
}

// Reads and writes elements of any float type as float.
struct FloatAccess {
  const TensorView& view;
  float get(int64_t i) const {
    return visit_float(
        view.type, [&](auto tag) { return static_cast<float>(view.as<typename decltype(tag)::type>()[i]); });
  }
  void set(int64_t i, float value) const {
    visit_float(view.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      view.as<T>()[i] = static_cast<T>(value);
    });
  }
};

class LstmRun {
 public:
  explicit LstmRun(const RunContext& c) : c_(c), a_(c.attrs<LstmAttrs>()) {
    const auto& sizes = c.bound_as<std::array<int64_t, 5>>();
    steps_ = c.inputs[kX].dims[a_.batch_first ? 1 : 0];
    batch_ = c.inputs[kX].dims[a_.batch_first ? 0 : 1];
    input_ = c.inputs[kX].dims[2];
    hidden_ = c.inputs[kR].dims[2];
    float* next = reinterpret_cast<float*>(c.scratch);
    auto take = [&](int64_t floats) { return std::exchange(next, next + floats); };
    gates_ = take(sizes[0]);
    h_ = take(sizes[1]);
    cell_ = take(sizes[1]);
    x_ = take(sizes[2]);
    w_ = packed(kW, sizes[3], next);
    r_ = packed(kR, sizes[4], next);
    rows_ = next;
  }

  void run() {
    read_x();
    for (int64_t d = 0; d < a_.directions; ++d) run_direction(d);
  }

 private:
  const std::byte* packed(size_t i, int64_t floats, float*& next) {
    const TensorView& view = c_.inputs[i];
    if (view.packed) return view.data;
    auto* destination = reinterpret_cast<std::byte*>(next);
    next += floats;
    if (view.type != ElementType::kFloat) return nullptr;
    pack_matrices(view, destination);
    return destination;
  }

  void read_x() {
    const FloatAccess x{c_.inputs[kX]};
    for (int64_t t = 0; t < steps_; ++t) {
      for (int64_t b = 0; b < batch_; ++b) {
        const int64_t from = a_.batch_first ? (b * steps_ + t) * input_ : (t * batch_ + b) * input_;
        for (int64_t i = 0; i < input_; ++i) x_[(t * batch_ + b) * input_ + i] = x.get(from + i);
      }
    }
  }

  // out[m, 4h] (+)= left[m, k] * matrix of direction d, transposed.
  void multiply(const float* left, int64_t m, int64_t k, size_t weight, int64_t d, float* out, bool add) {
    const int64_t gates = 4 * hidden_;
    const std::byte* matrix = weight == kW ? w_ : r_;
    if (matrix != nullptr) {
      kernels::GemmEpilogue epilogue;
      if (add) epilogue.addend = out, epilogue.addend_stride = gates;
      kernels::gemm_packed({m, k, gates}, {left, k, 1},
                           matrix + d * static_cast<int64_t>(kernels::packed_b_bytes(k, gates)), {out, gates},
                           epilogue, rows_, 1);
      return;
    }
    const FloatAccess values{c_.inputs[weight]};
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t g = 0; g < gates; ++g) {
        float sum = add ? out[i * gates + g] : 0.0f;
        for (int64_t j = 0; j < k; ++j) sum += left[i * k + j] * values.get((d * gates + g) * k + j);
        out[i * gates + g] = sum;
      }
    }
  }

  int64_t state_index(int64_t d, int64_t b) const {
    return (a_.batch_first ? b * a_.directions + d : d * batch_ + b) * hidden_;
  }
  int64_t length(int64_t b) const {
    if (!c_.has_input(kLengths)) return steps_;
    return std::clamp<int64_t>(c_.inputs[kLengths].as<int32_t>()[b], 0, steps_);
  }

  void run_direction(int64_t d) {
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t j = 0; j < hidden_; ++j) {
        h_[b * hidden_ + j] =
            c_.has_input(kInitialH) ? FloatAccess{c_.inputs[kInitialH]}.get(state_index(d, b) + j) : 0;
        cell_[b * hidden_ + j] =
            c_.has_input(kInitialC) ? FloatAccess{c_.inputs[kInitialC]}.get(state_index(d, b) + j) : 0;
      }
    }
    multiply(x_, steps_ * batch_, input_, kW, d, gates_, false);
    const bool reverse = d == 1 || a_.reverse;
    for (int64_t s = 0; s < steps_; ++s) {
      const int64_t t = reverse ? steps_ - 1 - s : s;
      multiply(h_, batch_, hidden_, kR, d, gates_ + t * batch_ * 4 * hidden_, true);
      for (int64_t b = 0; b < batch_; ++b) advance(d, t, b);
    }
    for (size_t o = 1; o <= 2; ++o) {
      if (!c_.has_output(o)) continue;
      const float* state = o == 1 ? h_ : cell_;
      for (int64_t b = 0; b < batch_; ++b) {
        for (int64_t j = 0; j < hidden_; ++j)
          FloatAccess{c_.outputs[o]}.set(state_index(d, b) + j, state[b * hidden_ + j]);
      }
    }
  }

  float clipped(float x) const { return a_.clip > 0 ? std::clamp(x, -a_.clip, a_.clip) : x; }
  float bias(int64_t d, int64_t gate, int64_t j) const {
    if (!c_.has_input(kB)) return 0;
    const FloatAccess values{c_.inputs[kB]};
    return values.get(d * 8 * hidden_ + gate * hidden_ + j) +
           values.get(d * 8 * hidden_ + (4 + gate) * hidden_ + j);
  }
  float peephole(int64_t d, int64_t gate, int64_t j) const {
    return c_.has_input(kPeephole) ? FloatAccess{c_.inputs[kPeephole]}.get((d * 3 + gate) * hidden_ + j) : 0;
  }

  // One step of one sequence. Past its length a sequence keeps its state and gives zeros.
  void advance(int64_t d, int64_t t, int64_t b) {
    const int64_t y = a_.batch_first ? ((b * steps_ + t) * a_.directions + d) * hidden_
                                     : ((t * a_.directions + d) * batch_ + b) * hidden_;
    const bool active = t < length(b);
    const float* gates = gates_ + (t * batch_ + b) * 4 * hidden_;
    const GateFunction* f = a_.functions + d * 3;
    for (int64_t j = 0; j < hidden_; ++j) {
      float& cell = cell_[b * hidden_ + j];
      float result = 0;
      if (active) {
        const float i = apply(f[0], clipped(gates[j] + bias(d, 0, j) + peephole(d, 0, j) * cell));
        const float forget_gate =
            a_.input_forget
                ? 1 - i
                : apply(f[0], clipped(gates[2 * hidden_ + j] + bias(d, 2, j) + peephole(d, 2, j) * cell));
        const float candidate = apply(f[1], clipped(gates[3 * hidden_ + j] + bias(d, 3, j)));
        cell = forget_gate * cell + i * candidate;
        const float o = apply(f[0], clipped(gates[hidden_ + j] + bias(d, 1, j) + peephole(d, 1, j) * cell));
        result = o * apply(f[2], cell);
        h_[b * hidden_ + j] = result;
      }
      if (c_.has_output(0)) FloatAccess{c_.outputs[0]}.set(y + j, result);
    }
  }

  const RunContext& c_;
  const LstmAttrs& a_;
  int64_t steps_, batch_, input_, hidden_;
  float *gates_, *h_, *cell_, *x_, *rows_;
  const std::byte *w_, *r_;  // null where the weights are not f32
};

void run(const RunContext& c) {
  LstmRun(c).run();
}

Cost cost(const NodeContext& c) {
  const auto x = c.dims(kX);
  const auto hidden = static_cast<double>(c.dims(kR)[2].value());
  const double operations = 8.0 * static_cast<double>(x[0].value()) * static_cast<double>(x[1].value()) *
                            hidden * (static_cast<double>(x[2].value()) + hidden) *
                            static_cast<double>(c.attrs<LstmAttrs>().directions);
  return {static_cast<int64_t>(std::min(operations, 9e18)), tensor_bytes(c)};
}

}  // namespace

extern const OpDef op_lstm = {
    .name = "LSTM",
    .inputs = {3, 8},
    .outputs = {0, 3},
    .attrs = attrs,
    .infer = infer,
    .packs = packs,
    .pack = pack,
    .select = select,
    .bind = bind,
    .run = run,
    .cost = cost,
};

}  // namespace plimsoll
