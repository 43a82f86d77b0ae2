// y = alpha * ln(exp(beta * x) + 1). An operator of ONNX's experimental days that old converters write and
// ONNX Runtime still has.
#include "ops/microsoft_decomposed.h"

namespace plimsoll {
namespace {

struct Factors {
  float alpha = 1.0f, beta = 1.0f;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<Factors>();
  a->alpha = c.real("alpha", 1.0f);
  a->beta = c.real("beta", 1.0f);
  return a;
}

void infer(InferContext& c) {
  infer_like_first(c, kFloatTypes, {});
}

void decompose(DecomposeContext& c) {
  const auto& a = c.attrs<Factors>();
  const auto factor = [&](float value) { return c.op("CastLike", {c.build.scalar(value), c.in(0)}); };
  c.op_into(0, "Mul", {c.op("Softplus", {c.op("Mul", {c.in(0), factor(a.beta)})}), factor(a.alpha)});
}

}  // namespace

extern const OpDef op_parametric_softplus = {
    .name = "ParametricSoftplus", .inputs = {1, 1}, .attrs = attrs, .infer = infer, .decompose = decompose};

}  // namespace plimsoll
