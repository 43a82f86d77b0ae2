#include "ops/resample.h"

namespace plimsoll {
namespace {

using Attrs = ResampleAttrs;

template <typename T>
struct Choice {
  std::string_view name;
  T value;
  int first_opset = 11;
};

template <typename T, size_t kCount>
T choose(AttrContext& c, int opset, std::string_view attribute, std::string_view fallback,
         const Choice<T> (&choices)[kCount]) {
  const std::string_view text = c.text(attribute, fallback);
  for (const Choice<T>& choice : choices) {
    if (choice.name == text && opset >= choice.first_opset) return choice.value;
  }
  c.reject("attribute '{}': '{}' is unknown (opset {})", attribute, text, opset);
}

constexpr Choice<Attrs::Mode> kModes[] = {{"nearest", Attrs::Mode::kNearest, 10},
                                          {"linear", Attrs::Mode::kLinear, 10},
                                          {"cubic", Attrs::Mode::kCubic}};
constexpr Choice<Attrs::Coordinates> kCoordinates[] = {
    {"half_pixel", Attrs::Coordinates::kHalfPixel},
    {"pytorch_half_pixel", Attrs::Coordinates::kPytorchHalfPixel},
    {"align_corners", Attrs::Coordinates::kAlignCorners},
    {"asymmetric", Attrs::Coordinates::kAsymmetric},
    {"tf_half_pixel_for_nn", Attrs::Coordinates::kTfHalfPixelForNearest},
    {"tf_crop_and_resize", Attrs::Coordinates::kTfCropAndResize},
    {"half_pixel_symmetric", Attrs::Coordinates::kHalfPixelSymmetric, 19}};
constexpr Choice<Attrs::Nearest> kNearest[] = {{"round_prefer_floor", Attrs::Nearest::kRoundPreferFloor},
                                               {"round_prefer_ceil", Attrs::Nearest::kRoundPreferCeil},
                                               {"floor", Attrs::Nearest::kFloor},
                                               {"ceil", Attrs::Nearest::kCeil}};
constexpr Choice<Attrs::Policy> kPolicies[] = {{"stretch", Attrs::Policy::kStretch},
                                               {"not_larger", Attrs::Policy::kNotLarger},
                                               {"not_smaller", Attrs::Policy::kNotSmaller}};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  if (c.opset() < 11) {
    a->mode = choose(c, c.opset(), "mode", "nearest", kModes);
    a->scales_input = 1;
    a->nearest = Attrs::Nearest::kOutward;  // no text says so; ONNX's own data of that time did
    return a;
  }
  a->roi_input = 1, a->scales_input = 2, a->sizes_input = 3;
  read_resize(c, c.opset(), *a);
  return a;
}

}  // namespace

void read_resize(AttrContext& c, int opset, ResampleAttrs& a) {
  a.mode = choose(c, opset, "mode", "nearest", kModes);
  a.coordinates = choose(c, opset, "coordinate_transformation_mode", "half_pixel", kCoordinates);
  a.nearest = choose(c, opset, "nearest_mode", "round_prefer_floor", kNearest);
  a.cubic_a = c.real("cubic_coeff_a", -0.75f);
  a.exclude_outside = c.integer("exclude_outside", 0) != 0;
  a.extrapolation = c.real("extrapolation_value", 0.0f);
  if (opset < 18) return;
  a.axes = c.integers("axes");
  a.antialias = c.integer("antialias", 0) != 0;
  a.policy = choose(c, opset, "keep_aspect_ratio_policy", "stretch", kPolicies);
}

extern const OpDef op_resize = {
    .name = "Resize",
    .inputs = {1, 4},
    .attrs = attrs,
    .infer = infer_resample,
    .select = select_resample,
    .run = run_resample,
    .layout = layout_resample,
    .region = region_resample,
    .gradient = gradient_resample,
};

}  // namespace plimsoll
