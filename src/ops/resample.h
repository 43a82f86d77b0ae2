// What Resize and Upsample share: coordinates, taps, shapes, the choice of the loop.
#pragma once

#include <span>
#include <string_view>

#include "graph/op_def.h"

namespace plimsoll {

struct ResampleAttrs {
  enum class Mode : uint8_t { kNearest, kLinear, kCubic };
  enum class Coordinates : uint8_t {
    kHalfPixel,
    kHalfPixelSymmetric,
    kPytorchHalfPixel,
    kAlignCorners,
    kAsymmetric,
    kTfHalfPixelForNearest,
    kTfCropAndResize,
  };
  enum class Nearest : uint8_t { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil, kOutward };
  enum class Policy : uint8_t { kStretch, kNotLarger, kNotSmaller };

  Mode mode = Mode::kNearest;
  Coordinates coordinates = Coordinates::kAsymmetric;
  Nearest nearest = Nearest::kFloor;  // kOutward: the ceiling where the axis shrinks, otherwise the floor
  Policy policy = Policy::kStretch;
  bool exclude_outside = false;
  bool antialias = false;
  bool quantized = false;  // bytes, whose scales and zero points are the inputs 1 to 4 (ops/qlinear.h)
  float cubic_a = -0.75f;
  float extrapolation = 0;
  std::span<const int64_t> axes;        // empty: all
  std::span<const float> fixed_scales;  // of Upsample before opset 9
  // Which inputs these are; 0 if there is none.
  size_t roi_input = 0, scales_input = 0, sizes_input = 0;
};

// What Resize has had from opset 11 on, but for the numbers of its inputs.
void read_resize(AttrContext& c, int opset, ResampleAttrs& a);

void infer_resample(InferContext& c);
void layout_resample(LayoutContext& c);
void region_resample(RegionContext& c);
const void* select_resample(SelectContext& c);
void run_resample(const RunContext& c);
void gradient_resample(GradientContext& c);

}  // namespace plimsoll
