#include <algorithm>

#include "ops/microsoft_decomposed.h"

namespace plimsoll {

extern const OpDef op_gemm;

namespace {

struct FusedGemmAttrs {
  std::string_view activation;
};

const void* attrs(AttrContext& c) {
  static constexpr std::string_view kKnown[] = {
      "",         "Relu",     "LeakyRelu", "Sigmoid",         "Tanh", "HardSigmoid", "Elu",
      "Softplus", "Softsign", "Celu",      "ThresholdedRelu", "Selu"};
  auto* a = c.make<FusedGemmAttrs>();
  a->activation = c.text("activation", "");
  if (std::find(std::begin(kKnown), std::end(kKnown), a->activation) == std::end(kKnown))
    c.reject("attribute 'activation': '{}' is unknown", a->activation);
  for (const char* name :
       {"alpha", "beta", "transA", "transB", "activation_alpha", "activation_beta", "activation_gamma"})
    c.ignore(name);
  return a;
}

AttributeList gemm_attributes(const Node& node, BumpArena& arena) {
  AttributeList list = attributes_of(node, arena);
  for (const char* name : {"activation", "activation_alpha", "activation_beta", "activation_gamma"})
    list.erase(name);
  return list;
}

void infer(InferContext& c) {
  const AttributeList list = gemm_attributes(c.node(), c.arena());
  infer_as(c, op_gemm, "", 13, facts_of_inputs(c), list.list());
}

void decompose(DecomposeContext& c) {
  const std::string_view activation = c.attrs<FusedGemmAttrs>().activation;
  const AttributeList list = gemm_attributes(c.node(), c.build.graph().arena());
  if (activation.empty()) {
    c.build.emit_into(c.node().outputs, "", "Gemm", c.node().inputs, list.list());
    return;
  }
  Edge* product = c.build.emit("", "Gemm", c.node().inputs, list.list())->outputs[0];
  AttributeList parameters = c.attributes();
  const auto pass_on = [&](std::string_view given, std::string_view name) {
    const Attribute* a = c.node().attribute(given);
    if (a != nullptr && a->type == AttributeType::kFloat) parameters.set(name, a->f);
  };
  const bool takes_alpha = activation != "Relu" && activation != "Sigmoid" && activation != "Tanh" &&
                           activation != "Softplus" && activation != "Softsign";
  if (takes_alpha) pass_on("activation_alpha", "alpha");
  if (activation == "HardSigmoid") pass_on("activation_beta", "beta");
  if (activation == "Selu") pass_on("activation_gamma", "gamma");
  c.op_into(0, activation, {product}, parameters);
}

}  // namespace

extern const OpDef op_microsoft_fused_gemm = {.domain = kMicrosoftDomain,
                                              .name = "FusedGemm",
                                              .inputs = {2, 3},
                                              .attrs = attrs,
                                              .infer = infer,
                                              .decompose = decompose};

}  // namespace plimsoll
