// Where the elements of a resampled axis come from.
#pragma once

#include "ops/resample.h"

namespace plimsoll {

// One axis of a concrete resampling.
struct ResampleAxis {
  int64_t in = 1, out = 1;
  float scale = 1;
  float roi_start = 0, roi_end = 1;
  // Nothing moves along it.
  bool is_identity(const ResampleAttrs& a) const {
    return in == out && scale == 1 &&
           (a.coordinates != ResampleAttrs::Coordinates::kTfCropAndResize ||
            (roi_start == 0 && roi_end == 1));
  }
};

inline constexpr int32_t kOutside = -1;  // index of a position that shows the extrapolation value

int64_t tap_count(const ResampleAttrs& a, const ResampleAxis& axis);
// At most so many taps for all positions of an axis, whatever its scale.
Dim most_taps(const ResampleAttrs& a, Dim in, Dim out);
// Writes out * tap_count indices and weights, tap after tap; indices are inside the axis, or kOutside.
void write_taps(const ResampleAttrs& a, const ResampleAxis& axis, int32_t* index, float* weight);

}  // namespace plimsoll
