// decay = decay_scale * Softplus(a + dt_bias), in f32; beta = Sigmoid(b).
#include "ops/microsoft_decomposed.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr size_t kA = 0, kBias = 1, kScale = 2, kB = 3;

void infer(InferContext& c) {
  infer_like_first(c, types(ElementType::kFloat, ElementType::kFloat16, ElementType::kBFloat16), {kB});
  c.expect_rank(kA, 3, 3);
  for (size_t i : {kBias, kScale}) {
    c.expect_type(i, types(ElementType::kFloat));
    c.expect_rank(i, 1, 1);
    if (c.ranked(kA)) expect_dims(c, i, {c.dims(kA)[2]});
  }
  if (!c.has_output(1)) return;
  if (!c.has_input(kB)) c.reject("output 1 needs input 3");
  c.set_output_type(1, c.input(kB).type);
}

void decompose(DecomposeContext& c) {
  const auto as = [&](Edge* edge, ElementType type) {
    return c.op("Cast", {edge}, c.attributes().set("to", static_cast<int64_t>(type)));
  };
  Edge* sum = c.op("Add", {as(c.in(kA), ElementType::kFloat), c.in(kBias)});
  Edge* decay = c.op("Mul", {c.op("Softplus", {sum}), c.in(kScale)});
  c.op_into(0, "Cast", {decay}, c.attributes().set("to", static_cast<int64_t>(c.type(kA))));
  if (c.node().outputs.size() > 1 && c.node().outputs[1] != nullptr) c.op_into(1, "Sigmoid", {c.in(kB)});
}

}  // namespace

extern const OpDef op_microsoft_linear_attention_gate = {.domain = kMicrosoftDomain,
                                                         .name = "LinearAttentionGate",
                                                         .inputs = {3, 4},
                                                         .outputs = {1, 2},
                                                         .infer = infer,
                                                         .decompose = decompose};

}  // namespace plimsoll
