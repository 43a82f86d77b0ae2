#include <algorithm>
#include <cmath>

#include "kernels/gemm.h"
#include "ops/lstm.h"

namespace plimsoll {
namespace {

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
  explicit LstmRun(const RunContext& c) : c_(c), a_(c.attrs<LstmAttrs>()), choice_(c.choice<LstmChoice>()) {
    steps_ = c.inputs[kLstmX].dims[a_.batch_first ? 1 : 0];
    batch_ = c.inputs[kLstmX].dims[a_.batch_first ? 0 : 1];
    input_ = c.inputs[kLstmX].dims[2];
    hidden_ = c.inputs[kLstmR].dims[2];
    gates_ = c.scratch_as<float>(choice_.gates_at);
    h_ = c.scratch_as<float>(choice_.h_at);
    cell_ = c.scratch_as<float>(choice_.cell_at);
    x_ = c.scratch_as<float>(choice_.x_at);
    w_ = matrices(kLstmW, choice_.w_packed, choice_.w_at);
    r_ = matrices(kLstmR, choice_.r_packed, choice_.r_at);
  }

  void run() {
    read_x();
    for (int64_t d = 0; d < a_.directions; ++d) run_direction(d);
  }

 private:
  // Null where the products go by the definition.
  const std::byte* matrices(size_t input, bool packed, int64_t at) {
    if (choice_.kernel == LstmKernel::kReference) return nullptr;
    if (packed) return c_.inputs[input].data;
    pack_lstm_matrices(c_.inputs[input], c_.scratch + at);
    return c_.scratch + at;
  }

  void read_x() {
    const FloatAccess x{c_.inputs[kLstmX]};
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
    const std::byte* matrix = weight == kLstmW ? w_ : r_;
    if (matrix != nullptr) {
      kernels::GemmEpilogue epilogue;
      if (add) epilogue.addend = out, epilogue.addend_stride = gates;
      kernels::gemm_packed({m, k, gates}, {left, k, 1},
                           matrix + d * static_cast<int64_t>(kernels::packed_b_bytes(k, gates)), {out, gates},
                           epilogue, c_.scratch + choice_.rows_at, 1);
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
    if (!c_.has_input(kLstmLengths)) return steps_;
    return std::clamp<int64_t>(c_.inputs[kLstmLengths].as<int32_t>()[b], 0, steps_);
  }

  void run_direction(int64_t d) {
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t j = 0; j < hidden_; ++j) {
        h_[b * hidden_ + j] = c_.has_input(kLstmInitialH)
                                  ? FloatAccess{c_.inputs[kLstmInitialH]}.get(state_index(d, b) + j)
                                  : 0;
        cell_[b * hidden_ + j] = c_.has_input(kLstmInitialC)
                                     ? FloatAccess{c_.inputs[kLstmInitialC]}.get(state_index(d, b) + j)
                                     : 0;
      }
    }
    multiply(x_, steps_ * batch_, input_, kLstmW, d, gates_, false);
    const bool reverse = d == 1 || a_.reverse;
    for (int64_t s = 0; s < steps_; ++s) {
      const int64_t t = reverse ? steps_ - 1 - s : s;
      multiply(h_, batch_, hidden_, kLstmR, d, gates_ + t * batch_ * 4 * hidden_, true);
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
    if (!c_.has_input(kLstmB)) return 0;
    const FloatAccess values{c_.inputs[kLstmB]};
    return values.get(d * 8 * hidden_ + gate * hidden_ + j) +
           values.get(d * 8 * hidden_ + (4 + gate) * hidden_ + j);
  }
  float peephole(int64_t d, int64_t gate, int64_t j) const {
    return c_.has_input(kLstmPeephole)
               ? FloatAccess{c_.inputs[kLstmPeephole]}.get((d * 3 + gate) * hidden_ + j)
               : 0;
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
  const LstmChoice& choice_;
  int64_t steps_, batch_, input_, hidden_;
  float *gates_, *h_, *cell_, *x_;
  const std::byte *w_, *r_;
};

}  // namespace

void run_lstm(const RunContext& c) {
  LstmRun(c).run();
}

}  // namespace plimsoll
