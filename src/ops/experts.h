// Mixture of experts, as com.microsoft has it twice: MoE, whose weights are floats, and QMoE, whose weights
// are integers of a few bits. Each row of the input goes through the k experts that the router names for it,
// two or three layers each, and their answers are summed up by the router's weights.
#pragma once

#include <array>
#include <limits>

#include "graph/op_def.h"

namespace plimsoll {

enum class ExpertActivation : uint8_t { kRelu, kGelu, kSilu, kIdentity, kSwiglu };

struct ExpertsAttrs {
  int64_t chosen = 1;  // experts for a row
  ExpertActivation activation = ExpertActivation::kRelu;
  bool normalizes = false;
  int64_t fusion = 0;  // of swiglu. 1: gate and value of a column are neighbours; 2: first all gates
  float alpha = 1, beta = 0, limit = std::numeric_limits<float>::infinity();

  // Gate and value come out of the first layer together.
  bool doubles() const { return activation == ExpertActivation::kSwiglu && fusion != 0; }
};
void read_experts(AttrContext& c, ExpertsAttrs& a);

inline constexpr size_t kExpertLayers = 3;  // the third, if any, is beside the first
// Which input is what. The first two are the same for both.
struct ExpertsInputs {
  std::array<size_t, kExpertLayers> weights, bias;
};
inline constexpr size_t kExpertsX = 0, kExpertsRouter = 1;

struct ExpertsShape {
  Dim rows, hidden, experts, inter;  // inter: what goes into the second layer
  std::array<Dim, kExpertLayers> outputs(const ExpertsAttrs& a) const {
    return {a.doubles() ? inter * Dim(2) : inter, hidden, inter};
  }
  std::array<Dim, kExpertLayers> depths() const { return {hidden, inter, hidden}; }
};
bool experts_ranked(const NodeContext& c, const ExpertsInputs& at);
// Ranks must be known; so many weights are in one element of the weights' innermost dimension.
ExpertsShape experts_shape(const NodeContext& c, const ExpertsInputs& at, int64_t weights_together);
// Types of x, router and biases, shapes of all but what QMoE alone has, and the output.
void infer_experts(InferContext& c, const ExpertsInputs& at, int64_t weights_together);

struct ExpertsChoice {
  int64_t rows = 0, hidden = 0, experts = 0, inter = 0;
  std::array<int64_t, kExpertLayers> outputs{}, depths{};
  int64_t panel = 0;  // columns of a layer that are multiplied at once
  // In scratch: x and the sum as floats; a pass's rows before, between and behind the layers; a layer's bias.
  int64_t x_at = 0, sum_at = 0, gathered_at = 0, first_at = 0, third_at = 0, middle_at = 0, y_at = 0,
          bias_at = 0;
  int64_t expert_at = 0, share_at = 0,
          list_at = 0;                    // of every row: its experts, their weights; a pass's rows
  int64_t order_at = 0, logits_at = 0;    // of one row: experts by their logit
  int64_t tasks_at = 0, task_bytes = 0;   // one thread's piece after the other's
  int64_t packed_in = 0, working_in = 0;  // offsets in it; a panel as floats comes first
};
ExpertsChoice choose_experts(SelectContext& c, const ExpertsInputs& at, int64_t weights_together);

// What the two have of their own.
class ExpertsWork {
 public:
  virtual ~ExpertsWork() = default;
  // The weights of one column of a layer as floats.
  virtual void widen(size_t layer, int64_t expert, int64_t column, float* to) const = 0;

  const TensorView* router_weights = nullptr;  // instead of the softmax, or null
  float least_share = 0;                       // a weight that is not above it counts for nothing
  bool softmax_of_chosen = false;              // instead of all
};
void run_experts(const RunContext& c, const ExpertsAttrs& a, const ExpertsInputs& at,
                 const ExpertsChoice& choice, const ExpertsWork& work);

Cost cost_of_experts(const NodeContext& c, const ExpertsInputs& at, int64_t weights_together);

}  // namespace plimsoll
