#include "ops/resample.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  ResampleAttrs* a = c.make<ResampleAttrs>();
  const std::string_view mode = c.text("mode", "nearest");
  if (mode == "linear" || mode == "bilinear") {
    a->mode = ResampleAttrs::Mode::kLinear;
  } else if (mode != "nearest") {
    c.reject("mode '{}' is unknown", mode);
  }
  if (c.opset() >= 9) {
    if (c.node().input(1) == nullptr) c.reject("input 1 (scales) is missing");
    a->scales_input = 1;
    return a;
  }
  if (c.opset() < 7) {  // images only
    const float scales[] = {1, 1, c.real("height_scale"), c.real("width_scale")};
    a->fixed_scales = c.arena().copy(std::span<const float>(scales));
    return a;
  }
  a->fixed_scales = c.reals("scales");
  if (a->fixed_scales.empty()) c.reject("attribute 'scales' is missing");
  return a;
}

}  // namespace

extern const OpDef op_upsample = {
    .name = "Upsample",
    .inputs = {1, 2},
    .attrs = attrs,
    .infer = infer_resample,
    .select = select_resample,
    .run = run_resample,
    .layout = layout_resample,
    .region = region_resample,
    .gradient = gradient_resample,
};

}  // namespace plimsoll
