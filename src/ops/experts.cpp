#include "ops/experts.h"

#include <algorithm>
#include <cmath>

#include "kernels/convert.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "ops/linear_quantization.h"
#include "ops/movement.h"
#include "ops/multi_head_attention.h"

namespace plimsoll {
namespace {

constexpr size_t kFirst = 0, kSecond = 1, kThird = 2;

ExpertActivation activation_of(AttrContext& c) {
  const std::string_view name = c.text("activation_type", "relu");
  if (name == "relu") return ExpertActivation::kRelu;
  if (name == "gelu") return ExpertActivation::kGelu;
  if (name == "silu") return ExpertActivation::kSilu;
  if (name == "identity") return ExpertActivation::kIdentity;
  if (name == "swiglu") return ExpertActivation::kSwiglu;
  c.reject("attribute 'activation_type': expected relu, gelu, silu, identity or swiglu, found '{}'", name);
}

float sigmoid(float x) {
  return 1.0f / (1.0f + std::exp(-x));
}

float activated(const ExpertsAttrs& a, float x) {
  switch (a.activation) {
    case ExpertActivation::kRelu:
      return std::max(x, 0.0f);
    case ExpertActivation::kGelu:  // by tanh
      return 0.5f * x * (1.0f + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
    case ExpertActivation::kSilu:
      return x * sigmoid(x);
    default:
      return x;
  }
}

float swiglu(const ExpertsAttrs& a, float gate, float value) {
  const float open = std::min(gate, a.limit);
  return open * sigmoid(a.alpha * open) * (std::clamp(value, -a.limit, a.limit) + a.beta);
}

class ExpertsRun {
 public:
  ExpertsRun(const RunContext& c, const ExpertsAttrs& a, const ExpertsInputs& at, const ExpertsChoice& choice,
             const ExpertsWork& work)
      : c_(c), a_(a), at_(at), p_(choice), work_(work) {}

  void run() {
    const TensorView& y = c_.outputs[0];
    if (p_.rows == 0 || p_.hidden == 0) return;
    const TensorView& x = c_.inputs[kExpertsX];
    x_ = x.type == ElementType::kFloat ? x.as<float>() : piece(p_.x_at);
    if (x.type != ElementType::kFloat) read_as_floats(x, 0, x.elements(), piece(p_.x_at));
    for (int64_t row = 0; row < p_.rows; ++row) route(row);
    float* sum = y.type == ElementType::kFloat ? y.as<float>() : piece(p_.sum_at);
    std::fill_n(sum, p_.rows * p_.hidden, 0.0f);
    for (int64_t expert = 0; expert < p_.experts; ++expert) ask(expert, sum);
    if (y.type != ElementType::kFloat)
      kernels::convert(ElementType::kFloat, sum, y.type, y.data, y.elements());
  }

 private:
  float* piece(int64_t at) const { return c_.scratch_as<float>(at); }

  // The experts of a row, the largest logit first; of equal ones the last.
  void route(int64_t row) const {
    float* logits = piece(p_.logits_at);
    auto* order = c_.scratch_as<int32_t>(p_.order_at);
    read_as_floats(c_.inputs[kExpertsRouter], row * p_.experts, p_.experts, logits);
    for (int64_t i = 0; i < p_.experts; ++i) order[i] = static_cast<int32_t>(i);
    std::partial_sort(order, order + a_.chosen, order + p_.experts, [&](int32_t i, int32_t k) {
      return logits[i] != logits[k] ? logits[i] > logits[k] : i > k;
    });
    int32_t* experts = c_.scratch_as<int32_t>(p_.expert_at) + row * a_.chosen;
    float* shares = piece(p_.share_at) + row * a_.chosen;
    std::copy_n(order, a_.chosen, experts);
    if (work_.router_weights != nullptr) {
      for (int64_t i = 0; i < a_.chosen; ++i)
        shares[i] = read_as_float(*work_.router_weights, row * p_.experts + experts[i]);
    } else {
      const float top = logits[order[0]];
      float all = 0;
      const int64_t counted = work_.softmax_of_chosen ? a_.chosen : p_.experts;
      for (int64_t i = 0; i < counted; ++i)
        all += std::exp(logits[work_.softmax_of_chosen ? order[i] : i] - top);
      for (int64_t i = 0; i < a_.chosen; ++i) shares[i] = std::exp(logits[experts[i]] - top) / all;
    }
    if (!a_.normalizes) return;
    float all = 0;
    for (int64_t i = 0; i < a_.chosen; ++i) all += shares[i];
    for (int64_t i = 0; i < a_.chosen; ++i) shares[i] = all == 0 ? 0 : shares[i] / all;
  }

  // Its rows together, through its layers.
  void ask(int64_t expert, float* sum) const {
    const auto* experts = c_.scratch_as<int32_t>(p_.expert_at);
    const float* shares = piece(p_.share_at);
    auto* list = c_.scratch_as<int32_t>(p_.list_at);  // places in the two
    int64_t rows = 0;
    for (int64_t i = 0; i < p_.rows * a_.chosen; ++i) {
      if (experts[i] == expert && shares[i] > work_.least_share) list[rows++] = static_cast<int32_t>(i);
    }
    if (rows == 0) return;
    float* gathered = piece(p_.gathered_at);
    for (int64_t i = 0; i < rows; ++i)
      std::copy_n(x_ + list[i] / a_.chosen * p_.hidden, p_.hidden, gathered + i * p_.hidden);
    multiply(kFirst, expert, gathered, rows, piece(p_.first_at));
    if (c_.has_input(at_.weights[kThird])) multiply(kThird, expert, gathered, rows, piece(p_.third_at));
    activate(rows);
    multiply(kSecond, expert, piece(p_.middle_at), rows, piece(p_.y_at));
    for (int64_t i = 0; i < rows; ++i) {
      const float* from = piece(p_.y_at) + i * p_.hidden;
      float* to = sum + list[i] / a_.chosen * p_.hidden;
      for (int64_t k = 0; k < p_.hidden; ++k) to[k] += shares[list[i]] * from[k];
    }
  }

  void activate(int64_t rows) const {
    const bool has_third = c_.has_input(at_.weights[kThird]);
    kernels::parallel_for(c_.threads, c_.threads, [&](int64_t task) {
      for (int64_t i = rows * task / c_.threads; i < rows * (task + 1) / c_.threads; ++i) {
        const float* first = piece(p_.first_at) + i * p_.outputs[kFirst];
        const float* third = piece(p_.third_at) + i * p_.inter;
        float* to = piece(p_.middle_at) + i * p_.inter;
        for (int64_t k = 0; k < p_.inter; ++k) {
          if (a_.doubles()) {
            to[k] = a_.fusion == 1 ? swiglu(a_, first[2 * k], first[2 * k + 1])
                                   : swiglu(a_, first[k], first[p_.inter + k]);
          } else if (a_.activation == ExpertActivation::kSwiglu) {
            to[k] = swiglu(a_, first[k], third[k]);
          } else {
            to[k] = activated(a_, first[k]) * (has_third ? third[k] : 1.0f);
          }
        }
      }
    });
  }

  void multiply(size_t layer, int64_t expert, const float* x, int64_t rows, float* y) const {
    const int64_t depth = p_.depths[layer], columns = p_.outputs[layer];
    float* bias = nullptr;
    if (c_.has_input(at_.bias[layer])) {
      bias = piece(p_.bias_at);
      read_as_floats(c_.inputs[at_.bias[layer]], expert * columns, columns, bias);
    }
    const int64_t panels = ceil_div(columns, p_.panel);
    kernels::parallel_for(c_.threads, c_.threads, [&](int64_t task) {
      std::byte* own = c_.scratch + p_.tasks_at + task * p_.task_bytes;
      auto* panel = reinterpret_cast<float*>(own);
      for (int64_t i = panels * task / c_.threads; i < panels * (task + 1) / c_.threads; ++i) {
        const int64_t column = i * p_.panel, width = std::min(p_.panel, columns - column);
        for (int64_t k = 0; k < width; ++k) work_.widen(layer, expert, column + k, panel + k * depth);
        kernels::pack_b(depth, width, {panel, 1, depth}, own + p_.packed_in);
        kernels::GemmEpilogue epilogue;
        if (bias != nullptr) epilogue.bias = bias + column;
        kernels::gemm_packed({rows, depth, width}, {x, depth, 1}, own + p_.packed_in, {y + column, columns},
                             epilogue, own + p_.working_in, 1);
      }
    });
  }

  const RunContext& c_;
  const ExpertsAttrs& a_;
  const ExpertsInputs& at_;
  const ExpertsChoice& p_;
  const ExpertsWork& work_;
  const float* x_ = nullptr;
};

}  // namespace

void read_experts(AttrContext& c, ExpertsAttrs& a) {
  a.chosen = c.integer("k", 1);
  if (a.chosen < 1 || a.chosen > INT32_MAX)
    c.reject("attribute 'k': expected at least 1, found {}", a.chosen);
  a.activation = activation_of(c);
  a.normalizes = c.integer("normalize_routing_weights", 0) == 1;
  a.fusion = c.integer("swiglu_fusion", 0);
  if (a.fusion < 0 || a.fusion > 2)
    c.reject("attribute 'swiglu_fusion': expected 0 to 2, found {}", a.fusion);
  a.alpha = c.real("activation_alpha", 1.0f);
  a.beta = c.real("activation_beta", 0.0f);
  a.limit = c.real("swiglu_limit", std::numeric_limits<float>::infinity());
  if (!(a.limit >= 0)) c.reject("attribute 'swiglu_limit': expected at least 0, found {}", a.limit);
  // Without an effect on ONNX Runtime's CPU either.
  if (c.integer("use_sparse_mixer", 0) == 1 && a.chosen != 2)
    c.reject("use_sparse_mixer needs two experts for a row, found k = {}", a.chosen);
}

bool experts_ranked(const NodeContext& c, const ExpertsInputs& at) {
  return c.ranked(kExpertsX) && c.ranked(kExpertsRouter) && c.ranked(at.weights[kFirst]) &&
         c.ranked(at.weights[kSecond]);
}

ExpertsShape experts_shape(const NodeContext& c, const ExpertsInputs& at, int64_t weights_together) {
  const auto x = c.dims(kExpertsX), second = c.dims(at.weights[kSecond]);
  return {product(x.first(x.size() - 1)), x.back(), c.dims(kExpertsRouter)[1],
          second[2] * Dim(weights_together)};
}

void infer_experts(InferContext& c, const ExpertsInputs& at, int64_t weights_together) {
  const auto& a = c.attrs<ExpertsAttrs>();
  c.expect_type(kExpertsX, kAttentionTypes);
  c.expect_same_type(kExpertsX, kExpertsRouter);
  c.expect_rank(kExpertsX, 2, 3);
  c.expect_rank(kExpertsRouter, 2, 2);
  for (size_t layer = 0; layer < kExpertLayers; ++layer) {
    if (c.has_input(at.weights[layer])) c.expect_rank(at.weights[layer], 3, 3);
    if (c.has_input(at.bias[layer])) c.expect_same_type(kExpertsX, at.bias[layer]);
  }
  const bool third = c.has_input(at.weights[kThird]);
  if (c.has_input(at.bias[kThird]) && !third) c.reject("a bias of fc3, whose weights are absent");
  if (a.activation == ExpertActivation::kSwiglu && a.fusion == 0 && !third)
    c.reject("swiglu_fusion 0 needs fc3_experts_weights");
  if (a.doubles() && third) c.reject("swiglu_fusion {} has no fc3", a.fusion);
  if (!experts_ranked(c, at)) {
    if (!c.ranked(kExpertsX)) return c.set_unranked_output(0, c.type(kExpertsX));
    return c.set_output(0, c.type(kExpertsX), c.dims(kExpertsX));
  }
  const ExpertsShape s = experts_shape(c, at, weights_together);
  if (s.experts.is_constant() && s.experts.value() < a.chosen)
    c.reject("k is {}, but there are {} experts", a.chosen, s.experts.value());
  expect_dims(c, kExpertsRouter, {s.rows, s.experts});
  const auto outputs = s.outputs(a), depths = s.depths();
  for (size_t layer = 0; layer < kExpertLayers; ++layer) {
    if (c.has_input(at.weights[layer]))
      expect_dims(c, at.weights[layer],
                  {s.experts, outputs[layer], floor_div(depths[layer], Dim(weights_together))});
    if (depths[layer].is_constant() && depths[layer].value() % weights_together != 0)
      c.reject("rows of {} weights do not fill their bytes, {} to each", depths[layer].value(),
               weights_together);
    if (c.has_input(at.bias[layer])) expect_dims(c, at.bias[layer], {s.experts, outputs[layer]});
  }
  c.set_output(0, c.type(kExpertsX), c.dims(kExpertsX));
}

ExpertsChoice choose_experts(SelectContext& c, const ExpertsInputs& at, int64_t weights_together) {
  ExpertsChoice p;
  if (!experts_ranked(c, at)) return p;
  const auto& a = c.attrs<ExpertsAttrs>();
  const ExpertsShape s = experts_shape(c, at, weights_together);
  const auto outputs = s.outputs(a), depths = s.depths();
  const bool narrow = c.type(kExpertsX) != ElementType::kFloat;
  const auto floats = [&](Dim count) { return c.scratch(count * Dim(4)); };
  p.panel = kernels::packed_b_format();
  if (narrow) p.x_at = floats(s.rows * s.hidden), p.sum_at = floats(s.rows * s.hidden);
  p.gathered_at = floats(s.rows * s.hidden);
  p.first_at = floats(s.rows * outputs[kFirst]);
  if (c.has_input(at.weights[kThird])) p.third_at = floats(s.rows * s.inter);
  p.middle_at = floats(s.rows * s.inter);
  p.y_at = floats(s.rows * s.hidden);
  p.bias_at = floats(max(outputs[kFirst], s.hidden));
  for (int64_t* place : {&p.expert_at, &p.share_at, &p.list_at}) *place = floats(s.rows * Dim(a.chosen));
  p.order_at = floats(s.experts), p.logits_at = floats(s.experts);
  const Dim depth = max(s.hidden, s.inter);
  Dim task = (depth + Dim(64)) * Dim(p.panel) * Dim(16);  // a bound, while sizes are not known
  if (c.is_concrete()) {
    p.rows = s.rows.value(), p.hidden = s.hidden.value();
    p.experts = s.experts.value(), p.inter = s.inter.value();
    for (size_t i = 0; i < kExpertLayers; ++i)
      p.outputs[i] = outputs[i].value(), p.depths[i] = depths[i].value();
    const auto aligned = [](int64_t bytes) { return round_up(bytes, SelectContext::kScratchAlignment); };
    const int64_t most = depth.value();
    p.packed_in = aligned(checked_mul(most, p.panel * 4));
    p.working_in = p.packed_in + aligned(static_cast<int64_t>(kernels::packed_b_bytes(most, p.panel)));
    p.task_bytes = p.working_in + aligned(static_cast<int64_t>(kernels::gemm_most_scratch_bytes(most, 1)));
    task = p.task_bytes;
  }
  p.tasks_at = c.scratch(task * Dim(c.threads));
  return p;
}

void run_experts(const RunContext& c, const ExpertsAttrs& a, const ExpertsInputs& at,
                 const ExpertsChoice& choice, const ExpertsWork& work) {
  ExpertsRun(c, a, at, choice, work).run();
}

Cost cost_of_experts(const NodeContext& c, const ExpertsInputs& at, int64_t weights_together) {
  const auto& a = c.attrs<ExpertsAttrs>();
  const ExpertsShape s = experts_shape(c, at, weights_together);
  const int64_t layers = c.has_input(at.weights[kThird]) || a.doubles() ? 3 : 2;
  const double operations = 2.0 * static_cast<double>(layers * a.chosen) *
                            static_cast<double>(s.rows.value()) * static_cast<double>(s.hidden.value()) *
                            static_cast<double>(s.inter.value());
  return {static_cast<int64_t>(std::min(operations, 9e18)), tensor_bytes(c)};
}

}  // namespace plimsoll
