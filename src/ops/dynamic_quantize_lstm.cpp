// LSTM with weights of 8 bits: what meets them, X as a whole and the hidden state of every step, is quantized
// as DynamicQuantizeLinear does. W and R are [directions, k, 4 * hidden], transposed against LSTM's.
#include <algorithm>

#include "kernels/int_gemm.h"
#include "ops/dynamic_quantization.h"
#include "ops/linear_quantization.h"
#include "ops/movement.h"
#include "ops/recurrent_run.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kW = 1, kR = 2, kB = 3, kLengths = 4, kInitialH = 5, kInitialC = 6, kPeephole = 7,
                 kWScale = 8, kWZero = 9, kRScale = 10, kRZero = 11;
constexpr RecurrentKind kKind = {4, 4, 3, {"sigmoid", "tanh", "tanh"}, true};
constexpr TypeSet kFloat = types(ElementType::kFloat);
constexpr TypeSet kBytes = types(ElementType::kInt8, ElementType::kUint8);

struct QuantizedLstmChoice {
  bool w_packed = false, r_packed = false;
  int64_t steps = 0, batch = 0, input = 0, hidden = 0;
  // Offsets in scratch: gates [steps, batch, 4h], product [batch, 4h], states h and c [batch, h].
  int64_t w_at = 0, r_at = 0, quantized_at = 0, gates_at = 0, product_at = 0, states_at = 0, bias_at = 0,
          scales_at = 0, zeros_at = 0, working_at = 0;
};

const void* attrs(AttrContext& c) {
  const RecurrentAttrs* a = recurrent_attrs(c, kKind);
  if (a->batch_first) c.reject("attribute 'layout': expected 0, found 1");
  return a;
}

// One value for each direction, or one for each of its columns.
void expect_quantization(const InferContext& c, size_t i, Dim directions, Dim columns) {
  if (!c.ranked(i)) return;
  if (c.rank(i) == 1) return expect_dims(c, i, {directions});
  expect_dims(c, i, {directions, columns});
}

void infer(InferContext& c) {
  const auto& a = c.attrs<RecurrentAttrs>();
  for (size_t i : {kX, kB, kInitialH, kInitialC, kPeephole, kWScale, kRScale}) {
    if (c.has_input(i)) c.expect_type(i, kFloat);
  }
  for (size_t i : {kW, kR}) c.expect_type(i, kBytes);
  c.expect_same_type(kW, kWZero);
  c.expect_same_type(kR, kRZero);
  if (c.has_input(kLengths)) c.expect_type(kLengths, types(ElementType::kInt32));
  for (size_t i : {kX, kW, kR}) {
    if (c.ranked(i)) c.expect_rank(i, 3, 3);
  }
  if (!c.ranked(kX) || !c.ranked(kR)) {
    for (size_t i = 0; i < 3; ++i) c.set_unranked_output(i, ElementType::kFloat);
    return;
  }
  const Dim steps = c.dims(kX)[0], batch = c.dims(kX)[1], hidden = c.dims(kR)[1], directions = a.directions;
  if (a.hidden != 0 && hidden.is_constant() && hidden.value() != a.hidden)
    c.reject("hidden_size is {}, but R has shape {}", a.hidden, to_string(c.dims(kR)));
  const Dim columns = hidden * Dim(4);
  expect_dims(c, kW, {directions, c.dims(kX)[2], columns});
  expect_dims(c, kR, {directions, hidden, columns});
  expect_dims(c, kB, {directions, hidden * Dim(8)});
  expect_dims(c, kLengths, {batch});
  expect_dims(c, kPeephole, {directions, hidden * Dim(3)});
  for (size_t i : {kWScale, kWZero, kRScale, kRZero}) expect_quantization(c, i, directions, columns);
  const std::vector<Dim> state = {directions, batch, hidden};
  expect_dims(c, kInitialH, state);
  expect_dims(c, kInitialC, state);
  c.set_output(0, ElementType::kFloat, {steps, directions, batch, hidden});
  c.set_output(1, ElementType::kFloat, state);
  c.set_output(2, ElementType::kFloat, state);
}

// Every direction's matrix packed; a bound while its dimensions are not known.
Dim packed_bytes(std::span<const Dim> dims) {
  if (dims[1].is_constant() && dims[2].is_constant())
    return dims[0] *
           Dim(static_cast<int64_t>(kernels::int_gemm_packed_bytes(dims[1].value(), dims[2].value())));
  return dims[0] * ((dims[2] + 32) * (dims[1] + 8) + 64);
}

bool ask_for_packed(const SelectContext& c, size_t input) {
  if (!c.input(input).is_concrete()) return false;
  return c.pack(input, {"int_lstm", {kernels::int_gemm_format(), c.type(input) == ElementType::kInt8}},
                packed_bytes(c.dims(input)).value());
}

const void* select(SelectContext& c) {
  auto* choice = c.make<QuantizedLstmChoice>();
  if (!c.ranked(kW) || !c.ranked(kR)) return choice;
  choice->w_packed = ask_for_packed(c, kW);
  choice->r_packed = ask_for_packed(c, kR);
  if (!choice->w_packed) choice->w_at = c.scratch(packed_bytes(c.dims(kW)));
  if (!choice->r_packed) choice->r_at = c.scratch(packed_bytes(c.dims(kR)));
  if (!c.ranked(kX)) return choice;
  const auto x = c.dims(kX);
  const Dim rows = x[0] * x[1], hidden = c.dims(kR)[1], columns = hidden * Dim(4);
  choice->quantized_at = c.scratch(max(rows * x[2], x[1] * hidden));
  choice->gates_at = c.scratch(rows * columns * Dim(4));
  choice->product_at = c.scratch(x[1] * columns * Dim(4));
  choice->states_at = c.scratch(x[1] * hidden * Dim(8));
  choice->bias_at = c.scratch(columns * Dim(4));
  choice->scales_at = c.scratch(columns * Dim(4));
  choice->zeros_at = c.scratch(columns * Dim(4));
  const kernels::IntGemmScratch working = kernels::int_gemm_scratch();
  choice->working_at =
      c.scratch(Dim(c.threads) * (max(x[2], hidden) * Dim(working.per_k) + Dim(working.base)));
  if (!c.is_concrete()) return choice;
  choice->steps = x[0].value(), choice->batch = x[1].value(), choice->input = x[2].value();
  choice->hidden = hidden.value();
  return choice;
}

void pack_matrices(const TensorView& raw, std::byte* destination) {
  const int64_t k = raw.dims[1], n = raw.dims[2];
  const auto bytes = static_cast<int64_t>(kernels::int_gemm_packed_bytes(k, n));
  for (int64_t d = 0; d < raw.dims[0]; ++d)
    kernels::int_gemm_pack(k, n, {raw.data + d * k * n, n, 1, raw.type == ElementType::kInt8},
                           destination + d * bytes);
}

void pack(const PackContext& c) {
  pack_matrices(c.raw, c.destination);
}

class QuantizedLstmRun {
 public:
  explicit QuantizedLstmRun(const RunContext& c)
      : c_(c), a_(c.attrs<RecurrentAttrs>()), p_(c.choice<QuantizedLstmChoice>()), width_(4 * p_.hidden) {
    w_ = p_.w_packed ? c.inputs[kW].data : packed(kW, p_.w_at);
    r_ = p_.r_packed ? c.inputs[kR].data : packed(kR, p_.r_at);
    gates_ = c.scratch_as<float>(p_.gates_at);
    h_ = c.scratch_as<float>(p_.states_at);
    cell_ = h_ + p_.batch * p_.hidden;
    for (int64_t b = 0; b < p_.batch; ++b) {
      if (length(b) < 0 || length(b) > p_.steps)
        fail(ErrorCode::kInvalidArgument, "{}: sequence_lens: expected 0 to {}, found {}", c.node->label(),
             p_.steps, length(b));
    }
  }

  void run() {
    for (int64_t d = 0; d < a_.directions; ++d) run_direction(d);
  }

 private:
  const std::byte* packed(size_t input, int64_t at) const {
    pack_matrices(c_.inputs[input], c_.scratch + at);
    return c_.scratch + at;
  }
  int64_t length(int64_t b) const {
    return c_.has_input(kLengths) ? c_.inputs[kLengths].as<int32_t>()[b] : p_.steps;
  }

  // to[m, 4h] = x[m, k] * matrix d of W or R.
  void multiply(const float* x, int64_t m, int64_t k, size_t weight, int64_t d, float* to) const {
    const TensorView &scale = c_.inputs[weight == kW ? kWScale : kRScale],
                     &zero = c_.inputs[weight == kW ? kWZero : kRZero];
    const DynamicScale found = dynamic_scale(x, m * k, c_.threads);
    auto* quantized = c_.scratch_as<uint8_t>(p_.quantized_at);
    kernels::quantize_8(x, m * k, found.scale, found.zero_point, 0, quantized, c_.threads);
    auto* scales = c_.scratch_as<float>(p_.scales_at);
    auto* zeros = c_.scratch_as<int32_t>(p_.zeros_at);
    for (int64_t i = 0; i < width_; ++i) {
      scales[i] = found.scale * scale.as<float>()[scale.rank() == 1 ? d : d * width_ + i];
      zeros[i] = integer_at(zero.type, zero.data, zero.rank() == 1 ? d : d * width_ + i);
    }
    kernels::IntGemmLeft left;
    left.data = quantized, left.row_stride = k, left.zero_point = found.zero_point;
    kernels::IntGemmFinish finish;
    finish.b_signed = c_.inputs[weight].type == ElementType::kInt8;
    finish.b_zero_points = zeros;
    finish.scales = scales;
    const std::byte* matrix =
        (weight == kW ? w_ : r_) + d * static_cast<int64_t>(kernels::int_gemm_packed_bytes(k, width_));
    kernels::int_gemm({m, k, width_}, left, matrix, {to, width_, kernels::IntGemmResult::kFloat}, finish,
                      c_.scratch + p_.working_at, c_.threads);
  }

  void run_direction(int64_t d) {
    read_state(kInitialH, d, h_);
    read_state(kInitialC, d, cell_);
    read_bias(d);
    multiply(c_.inputs[kX].as<float>(), p_.steps * p_.batch, p_.input, kW, d, gates_);
    const float* bias = c_.scratch_as<float>(p_.bias_at);
    auto* product = c_.scratch_as<float>(p_.product_at);
    const bool reverse = d == 1 || a_.reverse;
    for (int64_t s = 0; s < p_.steps; ++s) {
      const int64_t t = reverse ? p_.steps - 1 - s : s;
      multiply(h_, p_.batch, p_.hidden, kR, d, product);
      for (int64_t b = 0; b < p_.batch; ++b) {
        float* gates = gates_ + (t * p_.batch + b) * width_;
        for (int64_t i = 0; i < width_; ++i) gates[i] += product[b * width_ + i] + bias[i];
        const bool active = t < length(b);
        if (active) advance(d, gates, h_ + b * p_.hidden, cell_ + b * p_.hidden);
        write_y(d, t, b, active);
      }
    }
    write_state(1, d, h_);
    write_state(2, d, cell_);
  }

  void read_state(size_t input, int64_t d, float* to) const {
    const int64_t count = p_.batch * p_.hidden;
    if (c_.has_input(input)) {
      std::copy_n(c_.inputs[input].as<float>() + d * count, count, to);
    } else {
      std::fill_n(to, count, 0.0f);
    }
  }
  void write_state(size_t output, int64_t d, const float* from) const {
    const int64_t count = p_.batch * p_.hidden;
    if (c_.has_output(output)) std::copy_n(from, count, c_.outputs[output].as<float>() + d * count);
  }
  // Those of W and R together.
  void read_bias(int64_t d) const {
    auto* bias = c_.scratch_as<float>(p_.bias_at);
    const float* from = c_.has_input(kB) ? c_.inputs[kB].as<float>() + d * 2 * width_ : nullptr;
    for (int64_t i = 0; i < width_; ++i) bias[i] = from != nullptr ? from[i] + from[width_ + i] : 0;
  }
  // Past its length a sequence gives zeros.
  void write_y(int64_t d, int64_t t, int64_t b, bool active) const {
    if (!c_.has_output(0)) return;
    float* y = c_.outputs[0].as<float>() + ((t * a_.directions + d) * p_.batch + b) * p_.hidden;
    if (active) {
      std::copy_n(h_ + b * p_.hidden, p_.hidden, y);
    } else {
      std::fill_n(y, p_.hidden, 0.0f);
    }
  }

  void add_peephole(int64_t d, int64_t gate, const float* cell, float* x) const {
    if (!c_.has_input(kPeephole)) return;
    const float* weights = c_.inputs[kPeephole].as<float>() + (d * 3 + gate) * p_.hidden;
    for (int64_t j = 0; j < p_.hidden; ++j) x[j] += weights[j] * cell[j];
  }
  void activate(int64_t d, size_t function, float* x) const {
    if (a_.clip > 0) {
      for (int64_t j = 0; j < p_.hidden; ++j) x[j] = std::clamp(x[j], -a_.clip, a_.clip);
    }
    apply_gate(a_.functions[static_cast<size_t>(d) * kKind.functions + function], x, p_.hidden);
  }

  // One step of one sequence; gates in the order i, o, f, c.
  void advance(int64_t d, float* gates, float* h, float* cell) const {
    const int64_t n = p_.hidden;
    float *i = gates, *o = gates + n, *f = gates + 2 * n, *candidate = gates + 3 * n;
    add_peephole(d, 0, cell, i);
    activate(d, 0, i);
    if (a_.input_forget) {
      for (int64_t j = 0; j < n; ++j) f[j] = 1 - i[j];
    } else {
      add_peephole(d, 2, cell, f);
      activate(d, 0, f);
    }
    activate(d, 1, candidate);
    for (int64_t j = 0; j < n; ++j) h[j] = cell[j] = f[j] * cell[j] + i[j] * candidate[j];
    add_peephole(d, 1, cell, o);
    activate(d, 0, o);
    apply_gate(a_.functions[static_cast<size_t>(d) * kKind.functions + 2], h, n);
    for (int64_t j = 0; j < n; ++j) h[j] *= o[j];
  }

  const RunContext& c_;
  const RecurrentAttrs& a_;
  const QuantizedLstmChoice& p_;
  int64_t width_;
  const std::byte *w_, *r_;
  float *gates_, *h_, *cell_;
};

void run(const RunContext& c) {
  QuantizedLstmRun(c).run();
}

}  // namespace

extern const OpDef op_dynamic_quantize_lstm = {
    .domain = kMicrosoftDomain,
    .name = "DynamicQuantizeLSTM",
    .inputs = {12, 12},
    .outputs = {0, 3},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .pack = pack,
    .run = run,
    .optional_inputs =
        (1u << kB) | (1u << kLengths) | (1u << kInitialH) | (1u << kInitialC) | (1u << kPeephole),
};

}  // namespace plimsoll
