// Mixture of experts whose weights are integers of 2, 4 or 8 bits, with a scale for each column or for each
// block of one.
#include "kernels/block_dequantize.h"
#include "ops/experts.h"
#include "ops/linear_quantization.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr ExpertsInputs kInputs = {.weights = {2, 5, 8}, .bias = {4, 7, 10}};
constexpr std::array<size_t, kExpertLayers> kScales = {3, 6, 9}, kZeros = {11, 12, 13};
constexpr size_t kRouterWeights = 14, kFirstGlobal = 15, kInputCount = 21;
constexpr float kLeastShare = 1e-8f;

struct QuantizedAttrs : ExpertsAttrs {
  int64_t bits = 4, block = 0;  // block 0: a column has one scale
  int64_t together() const { return 8 / bits; }
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<QuantizedAttrs>();
  read_experts(c, *a);
  a->bits = c.integer("expert_weight_bits", 4);
  if (a->bits != 2 && a->bits != 4 && a->bits != 8)
    c.reject("attribute 'expert_weight_bits': expected 2, 4 or 8, found {}", a->bits);
  a->block = c.integer("block_size", 0);
  if (a->block != 0 && (a->block < 16 || a->block > INT32_MAX || (a->block & (a->block - 1)) != 0))
    c.reject("attribute 'block_size': expected a power of two from 16 on, found {}", a->block);
  c.ignore("weights_prepacked");  // another provider's layouts; here weights are as they are written
  const std::string_view kind = c.text("quant_type", "int");
  if (kind != "int") fail(ErrorCode::kNotImplemented, "{}: quant_type '{}'", c.node().label(), kind);
  for (size_t i = kFirstGlobal; i < kInputCount; ++i) {
    if (c.node().input(i) != nullptr) c.reject("input {} belongs to another quant_type than int", i);
  }
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<QuantizedAttrs>();
  for (size_t layer = 0; layer < kExpertLayers; ++layer) {
    if (!c.has_input(kInputs.weights[layer])) continue;
    c.expect_type(kInputs.weights[layer], types(ElementType::kUint8));
    if (!c.has_input(kScales[layer])) c.reject("input {}: weights of integers have scales", kScales[layer]);
    c.expect_type(kScales[layer], types(ElementType::kFloat, ElementType::kFloat16, ElementType::kBFloat16));
    if (c.has_input(kZeros[layer])) c.expect_type(kZeros[layer], types(ElementType::kUint8));
  }
  if (c.has_input(kRouterWeights)) c.expect_same_type(kExpertsX, kRouterWeights);
  infer_experts(c, kInputs, a.together());
  if (!experts_ranked(c, kInputs)) return;
  const ExpertsShape s = experts_shape(c, kInputs, a.together());
  if (c.has_input(kRouterWeights)) expect_dims(c, kRouterWeights, {s.rows, s.experts});
  const auto outputs = s.outputs(a), depths = s.depths();
  for (size_t layer = 0; layer < kExpertLayers; ++layer) {
    if (!c.has_input(kInputs.weights[layer])) continue;
    const Dim together(a.together());
    std::vector<Dim> scales{s.experts, outputs[layer]}, zeros{s.experts, ceil_div(outputs[layer], together)};
    if (a.block != 0) {
      if (depths[layer].is_constant() && depths[layer].value() % a.block != 0)
        c.reject("rows of {} weights cannot be divided into blocks of {}", depths[layer].value(), a.block);
      const Dim blocks = floor_div(depths[layer], Dim(a.block));
      scales.push_back(blocks);
      zeros = {s.experts, outputs[layer], ceil_div(blocks, together)};
    }
    expect_dims(c, kScales[layer], scales);
    if (c.has_input(kZeros[layer])) expect_dims(c, kZeros[layer], zeros);
  }
}

const void* select(SelectContext& c) {
  auto* choice = c.make<ExpertsChoice>();
  *choice = choose_experts(c, kInputs, c.attrs<QuantizedAttrs>().together());
  return choice;
}

class Integers final : public ExpertsWork {
 public:
  Integers(const RunContext& c, const ExpertsChoice& choice)
      : c_(c), a_(c.attrs<QuantizedAttrs>()), p_(choice) {
    if (c.has_input(kRouterWeights)) router_weights = &c.inputs[kRouterWeights];
    least_share = kLeastShare;
    softmax_of_chosen = true;
  }

  void widen(size_t layer, int64_t expert, int64_t column, float* to) const override {
    const int64_t depth = p_.depths[layer], block = a_.block == 0 ? depth : a_.block;
    const int64_t blocks = a_.block == 0 ? 1 : depth / block;
    const int64_t row = expert * p_.outputs[layer] + column;
    const uint8_t* weights = c_.inputs[kInputs.weights[layer]].as<uint8_t>() + row * depth / a_.together();
    for (int64_t i = 0; i < blocks; ++i) {
      const float scale = read_as_float(c_.inputs[kScales[layer]], row * blocks + i);
      kernels::dequantize_bits(weights + i * block / a_.together(), static_cast<int>(a_.bits), block, scale,
                               zero(layer, expert, column, i, blocks), to + i * block);
    }
  }

 private:
  // Those of a column's blocks are packed together; with one for a column, those of an expert's columns.
  float zero(size_t layer, int64_t expert, int64_t column, int64_t block, int64_t blocks) const {
    if (!c_.has_input(kZeros[layer])) return static_cast<float>(1 << (a_.bits - 1));
    const int64_t line = a_.block == 0 ? expert : expert * p_.outputs[layer] + column;
    const int64_t count = a_.block == 0 ? p_.outputs[layer] : blocks, at = a_.block == 0 ? column : block;
    const uint8_t byte =
        c_.inputs[kZeros[layer]].as<uint8_t>()[line * ceil_div(count, a_.together()) + at / a_.together()];
    return static_cast<float>((byte >> (at % a_.together() * a_.bits)) & ((1 << a_.bits) - 1));
  }

  const RunContext& c_;
  const QuantizedAttrs& a_;
  const ExpertsChoice& p_;
};

void run(const RunContext& c) {
  const auto& choice = c.choice<ExpertsChoice>();
  run_experts(c, c.attrs<QuantizedAttrs>(), kInputs, choice, Integers(c, choice));
}

Cost cost(const NodeContext& c) {
  return cost_of_experts(c, kInputs, c.attrs<QuantizedAttrs>().together());
}

}  // namespace

extern const OpDef op_microsoft_qmoe = {
    .domain = kMicrosoftDomain,
    .name = "QMoE",
    .inputs = {6, kInputCount},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .cost = cost,
    .optional_inputs = 0b11000,
};

}  // namespace plimsoll
