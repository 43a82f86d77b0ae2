// Resize that interpolates between bytes: what stands for DequantizeLinear, Resize, QuantizeLinear.
#include "ops/qlinear.h"
#include "ops/resample.h"

namespace plimsoll {
namespace {

constexpr size_t kScales = 5, kSizes = 6;

const void* attrs(AttrContext& c) {
  auto* a = c.make<ResampleAttrs>();
  read_resize(c, 19, *a);
  if (a->mode == ResampleAttrs::Mode::kNearest) c.reject("attribute 'mode': expected 'linear' or 'cubic'");
  if (a->coordinates == ResampleAttrs::Coordinates::kTfCropAndResize)
    c.reject("attribute 'coordinate_transformation_mode': 'tf_crop_and_resize' is not supported");
  a->quantized = true;
  a->scales_input = kScales, a->sizes_input = kSizes;
  return a;
}

void infer(InferContext& c) {
  expect_qlinear_unary(c);
  infer_resample(c);
}

}  // namespace

extern const OpDef op_qlinear_resize = {
    .domain = kPlimsollDomain,
    .name = "QLinearResize",
    .inputs = {6, 7},
    .attrs = attrs,
    .infer = infer,
    .select = select_resample,
    .run = run_resample,
    .layout = layout_resample,
    .optional_inputs = (1u << kUnaryXZero) | (1u << kUnaryYZero) | (1u << kScales) | (1u << kSizes),
};

}  // namespace plimsoll
