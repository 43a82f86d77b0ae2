#include "ops/layout.h"
#include "ops/linear_quantization.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr TypeSet kOutputs = types(ElementType::kFloat, ElementType::kFloat16, ElementType::kBFloat16);
constexpr TypeSet kOldQuantized = types(ElementType::kInt8, ElementType::kUint8, ElementType::kInt32);
constexpr TypeSet kQuantized =
    kOldQuantized | kPackedTypes |
    types(ElementType::kInt16, ElementType::kUint16, ElementType::kFloat8E4M3FN, ElementType::kFloat8E4M3FNUZ,
          ElementType::kFloat8E5M2, ElementType::kFloat8E5M2FNUZ);

const void* attrs(AttrContext& c) {
  auto* a = c.make<QuantizationAttrs>();
  if (c.opset() >= 13) a->axis = c.integer("axis", 1);
  if (c.opset() >= 21) read_block(c, *a);
  if (c.opset() >= 23) a->output = read_type(c, "output_dtype", kOutputs);
  return a;
}

void infer(InferContext& c) {
  const ElementType wanted = c.attrs<QuantizationAttrs>().output;
  c.expect_type(kQuantizeX, c.opset() < 19 ? kOldQuantized : kQuantized);
  c.expect_type(kQuantizeScale, kOutputs | types(ElementType::kFloat8E8M0));
  if (c.has_input(kQuantizeZero)) c.expect_same_type(kQuantizeX, kQuantizeZero);
  ElementType output = wanted != ElementType::kUndefined ? wanted : c.type(kQuantizeScale);
  if (output == ElementType::kFloat8E8M0) {
    if (c.opset() < 23) c.reject("input 1: type float8e8m0 is not allowed (opset {})", c.opset());
    c.reject("scales of type float8e8m0 need the attribute 'output_dtype'");
  }
  infer_quantization(c, output);
}

void layout(LayoutContext& c) {
  if (c.has_one_element(kQuantizeScale)) c.either({kQuantizeX});
}

}  // namespace

extern const OpDef op_dequantize_linear = {
    .name = "DequantizeLinear",
    .inputs = {2, 3},
    .attrs = attrs,
    .infer = infer,
    .run = run_dequantize,
    .layout = layout,
};

}  // namespace plimsoll
