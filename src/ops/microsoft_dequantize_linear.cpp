#include "ops/linear_quantization.h"

namespace plimsoll {
namespace {

constexpr TypeSet kQuantized =
    types(ElementType::kInt8, ElementType::kUint8, ElementType::kInt16, ElementType::kUint16,
          ElementType::kInt32, ElementType::kInt4, ElementType::kUint4);

const void* attrs(AttrContext& c) {
  auto* a = c.make<QuantizationAttrs>();
  a->axis = c.integer("axis", 1);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(kQuantizeX, kQuantized);
  c.expect_type(kQuantizeScale, types(ElementType::kFloat, ElementType::kFloat16));
  if (c.has_input(kQuantizeZero)) c.expect_same_type(kQuantizeX, kQuantizeZero);
  infer_quantization(c, c.type(kQuantizeScale));
}

}  // namespace

extern const OpDef op_microsoft_dequantize_linear = {
    .domain = kMicrosoftDomain,
    .name = "DequantizeLinear",
    .inputs = {2, 3},
    .attrs = attrs,
    .infer = infer,
    .run = run_dequantize,
};

}  // namespace plimsoll
