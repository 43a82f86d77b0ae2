// y = scale * x + bias by channel. An operator of ONNX's experimental days that converters of images for
// CoreML and WinML write, and ONNX Runtime still has; Scale is it without a bias.
#include "ops/microsoft_decomposed.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct ScalerAttrs {
  float scale = 1;
  std::span<const float> bias;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<ScalerAttrs>();
  a->scale = c.real("scale", 1.0f);
  a->bias = c.reals("bias");
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<ScalerAttrs>();
  infer_like_first(c, kFloatTypes, {});
  if (a.bias.empty()) return;
  c.expect_rank(0, 4, 4);
  if (!c.ranked(0)) return;
  const Dim channels = c.dims(0)[1];
  if (channels.is_constant() && channels.value() != static_cast<int64_t>(a.bias.size()))
    c.reject("attribute 'bias': expected {} numbers, one per channel, found {}", channels.value(),
             a.bias.size());
}

void decompose(DecomposeContext& c) {
  const auto& a = c.attrs<ScalerAttrs>();
  const auto typed = [&](Edge* edge) { return c.op("CastLike", {edge, c.in(0)}); };
  const std::initializer_list<Edge*> factors = {c.in(0), typed(c.build.scalar(a.scale))};
  if (a.bias.empty()) {
    c.op_into(0, "Mul", factors);
    return;
  }
  Edge* bias = c.op("Constant", {}, c.attributes().set("value_floats", a.bias));
  c.op_into(0, "Add", {c.op("Mul", factors), typed(c.op("Reshape", {bias, c.build.integers({-1, 1, 1})}))});
}

}  // namespace

extern const OpDef op_image_scaler = {
    .name = "ImageScaler", .inputs = {1, 1}, .attrs = attrs, .infer = infer, .decompose = decompose};

}  // namespace plimsoll
