// y = alpha * x + beta. An operator of ONNX's experimental days that old converters write and ONNX Runtime
// still has.
#include "ops/microsoft_decomposed.h"

namespace plimsoll {
namespace {

struct Factors {
  float alpha = 1.0f, beta = 0.0f;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<Factors>();
  a->alpha = c.real("alpha", 1.0f);
  a->beta = c.real("beta", 0.0f);
  return a;
}

void infer(InferContext& c) {
  infer_like_first(c, kFloatTypes, {});
}

void decompose(DecomposeContext& c) {
  const auto& a = c.attrs<Factors>();
  const auto factor = [&](float value) { return c.op("CastLike", {c.build.scalar(value), c.in(0)}); };
  c.op_into(0, "Add", {c.op("Mul", {c.in(0), factor(a.alpha)}), factor(a.beta)});
}

}  // namespace

extern const OpDef op_affine = {
    .name = "Affine", .inputs = {1, 1}, .attrs = attrs, .infer = infer, .decompose = decompose};

}  // namespace plimsoll
