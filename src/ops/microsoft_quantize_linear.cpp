#include "ops/linear_quantization.h"

namespace plimsoll {
namespace {

constexpr TypeSet kQuantized = types(ElementType::kInt8, ElementType::kUint8, ElementType::kInt16,
                                     ElementType::kUint16, ElementType::kInt4, ElementType::kUint4);

const void* attrs(AttrContext& c) {
  auto* a = c.make<QuantizationAttrs>();
  a->axis = c.integer("axis", 1);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(kQuantizeX, types(ElementType::kFloat, ElementType::kFloat16));
  c.expect_same_type(kQuantizeX, kQuantizeScale);
  if (c.has_input(kQuantizeZero)) c.expect_type(kQuantizeZero, kQuantized);
  infer_quantization(c, c.has_input(kQuantizeZero) ? c.type(kQuantizeZero) : ElementType::kUint8);
}

}  // namespace

extern const OpDef op_microsoft_quantize_linear = {
    .domain = kMicrosoftDomain,
    .name = "QuantizeLinear",
    .inputs = {2, 3},
    .attrs = attrs,
    .infer = infer,
    .run = run_quantize,
};

}  // namespace plimsoll
