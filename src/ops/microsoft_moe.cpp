// Mixture of experts whose weights are floats.
#include "ops/experts.h"
#include "ops/linear_quantization.h"

namespace plimsoll {
namespace {

constexpr ExpertsInputs kInputs = {.weights = {2, 4, 6}, .bias = {3, 5, 7}};

const void* attrs(AttrContext& c) {
  auto* a = c.make<ExpertsAttrs>();
  read_experts(c, *a);
  return a;
}

void infer(InferContext& c) {
  for (size_t i : kInputs.weights) {
    if (c.has_input(i)) c.expect_same_type(kExpertsX, i);
  }
  infer_experts(c, kInputs, 1);
}

const void* select(SelectContext& c) {
  auto* choice = c.make<ExpertsChoice>();
  *choice = choose_experts(c, kInputs, 1);
  return choice;
}

class Floats final : public ExpertsWork {
 public:
  Floats(const RunContext& c, const ExpertsChoice& choice) : c_(c), p_(choice) {}
  void widen(size_t layer, int64_t expert, int64_t column, float* to) const override {
    const int64_t row = expert * p_.outputs[layer] + column;
    read_as_floats(c_.inputs[kInputs.weights[layer]], row * p_.depths[layer], p_.depths[layer], to);
  }

 private:
  const RunContext& c_;
  const ExpertsChoice& p_;
};

void run(const RunContext& c) {
  const auto& choice = c.choice<ExpertsChoice>();
  run_experts(c, c.attrs<ExpertsAttrs>(), kInputs, choice, Floats(c, choice));
}

Cost cost(const NodeContext& c) {
  return cost_of_experts(c, kInputs, 1);
}

}  // namespace

extern const OpDef op_microsoft_moe = {
    .domain = kMicrosoftDomain,
    .name = "MoE",
    .inputs = {5, 8},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .cost = cost,
    .optional_inputs = 0b1000,
};

}  // namespace plimsoll
