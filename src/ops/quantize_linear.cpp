#include "ops/layout.h"
#include "ops/linear_quantization.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr TypeSet kBytes = types(ElementType::kInt8, ElementType::kUint8);
constexpr TypeSet kFloat8 = types(ElementType::kFloat8E4M3FN, ElementType::kFloat8E4M3FNUZ,
                                  ElementType::kFloat8E5M2, ElementType::kFloat8E5M2FNUZ);
constexpr TypeSet kAllQuantized =
    kBytes | kFloat8 | kPackedTypes | types(ElementType::kInt16, ElementType::kUint16);
constexpr TypeSet kPrecisions = types(ElementType::kFloat, ElementType::kFloat16, ElementType::kBFloat16);

TypeSet outputs_of(int opset) {
  return opset < 19 ? kBytes : opset < 21 ? kBytes | kFloat8 : kAllQuantized;
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<QuantizationAttrs>();
  const int opset = c.opset();
  if (opset >= 13) a->axis = c.integer("axis", 1);
  if (opset >= 19) a->rules.saturate = c.integer("saturate", 1) != 0;
  if (opset >= 21) {
    read_block(c, *a);
    a->output = read_type(c, "output_dtype", kAllQuantized);
  }
  if (opset >= 23) a->precision = read_type(c, "precision", kPrecisions);
  a->rules.saturate_infinity = opset >= 24;
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<QuantizationAttrs>();
  const TypeSet from = kPrecisions | types(ElementType::kInt32);
  c.expect_type(kQuantizeX, from);
  c.expect_type(kQuantizeScale, c.opset() < 23 ? from : from | types(ElementType::kFloat8E8M0));
  ElementType output = a.output != ElementType::kUndefined ? a.output : ElementType::kUint8;
  if (c.has_input(kQuantizeZero)) {
    c.expect_type(kQuantizeZero, outputs_of(c.opset()));
    const ElementType zero = c.type(kQuantizeZero);
    if (a.output != ElementType::kUndefined && a.output != zero)
      c.reject("attribute 'output_dtype' says {}, the zero point is of type {}", element_type_name(a.output),
               element_type_name(zero));
    output = zero;
  }
  infer_quantization(c, output);
}

void layout(LayoutContext& c) {
  if (c.has_one_element(kQuantizeScale)) c.either({kQuantizeX});
}

}  // namespace

extern const OpDef op_quantize_linear = {
    .name = "QuantizeLinear",
    .inputs = {2, 3},
    .attrs = attrs,
    .infer = infer,
    .run = run_quantize,
    .layout = layout,
};

}  // namespace plimsoll
