#include "ops/resample_taps.h"

#include <algorithm>
#include <cmath>

namespace plimsoll {
namespace {

using Mode = ResampleAttrs::Mode;
using Coordinates = ResampleAttrs::Coordinates;
using Nearest = ResampleAttrs::Nearest;

// The position in the input that output position i shows; in float, as other runtimes compute it.
float source_position(const ResampleAttrs& a, const ResampleAxis& axis, int64_t i) {
  const auto x = static_cast<float>(i), in = static_cast<float>(axis.in);
  const float length = axis.scale * in;  // of the output, before it was rounded
  switch (a.coordinates) {
    case Coordinates::kAsymmetric:
      return x / axis.scale;
    case Coordinates::kAlignCorners:
      return length == 1 ? 0 : x * (in - 1) / (length - 1);
    case Coordinates::kPytorchHalfPixel:
      return axis.out > 1 ? (x + 0.5f) / axis.scale - 0.5f : 0;
    case Coordinates::kTfHalfPixelForNearest:
      return (x + 0.5f) / axis.scale;
    case Coordinates::kHalfPixelSymmetric: {
      const float adjustment = static_cast<float>(axis.out) / length;
      return in / 2 * (1 - adjustment) + (x + 0.5f) / axis.scale - 0.5f;
    }
    case Coordinates::kTfCropAndResize: {
      const float span = axis.roi_end - axis.roi_start;
      const float inside = axis.out > 1 ? x * span * (in - 1) / (length - 1) : span * (in - 1) / 2;
      return axis.roi_start * (in - 1) + inside;
    }
    case Coordinates::kHalfPixel:
      break;
  }
  return (x + 0.5f) / axis.scale - 0.5f;
}

float nearest_position(Nearest nearest, float scale, float x) {
  switch (nearest) {
    case Nearest::kOutward:
      return scale < 1 ? std::ceil(x) : std::floor(x);
    case Nearest::kFloor:
      return std::floor(x);
    case Nearest::kCeil:
      return std::ceil(x);
    case Nearest::kRoundPreferCeil:
      return std::floor(x + 0.5f);
    case Nearest::kRoundPreferFloor:
      break;
  }
  return std::ceil(x - 0.5f);
}

float cubic_weight(float distance, float a) {
  const float x = std::fabs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

float weight_at(const ResampleAttrs& a, float distance) {
  return a.mode == Mode::kCubic ? cubic_weight(distance, a.cubic_a) : std::max(0.0f, 1 - std::fabs(distance));
}

// Antialiasing widens the kernel where the axis shrinks.
float kernel_scale(const ResampleAttrs& a, const ResampleAxis& axis) {
  return a.antialias ? std::min(axis.scale, 1.0f) : 1.0f;
}

void write_position(const ResampleAttrs& a, const ResampleAxis& axis, int64_t taps, float x, int32_t* index,
                    float* weight) {
  const auto last = static_cast<float>(axis.in - 1);
  if (a.mode == Mode::kNearest) {
    index[0] = static_cast<int32_t>(std::clamp(nearest_position(a.nearest, axis.scale, x), 0.0f, last));
    weight[0] = 1;
    return;
  }
  const float scale = kernel_scale(a, axis), floor = std::floor(x);
  const int64_t before = taps / 2 - 1;
  float sum = 0;
  for (int64_t t = 0; t < taps; ++t) {
    const float position = floor + static_cast<float>(t - before);
    const bool outside = position < 0 || position > last;
    const float w = outside && a.exclude_outside ? 0.0f : weight_at(a, (position - x) * scale);
    index[t * axis.out] = static_cast<int32_t>(std::clamp(position, 0.0f, last));
    weight[t * axis.out] = w;
    sum += w;
  }
  if (!a.antialias && !a.exclude_outside) return;
  for (int64_t t = 0; t < taps && sum != 0; ++t) weight[t * axis.out] /= sum;
}

}  // namespace

int64_t tap_count(const ResampleAttrs& a, const ResampleAxis& axis) {
  if (a.mode == Mode::kNearest) return 1;
  const float reach = a.mode == Mode::kCubic ? 2 : 1;
  return 2 * static_cast<int64_t>(std::ceil(reach / kernel_scale(a, axis)));
}

Dim most_taps(const ResampleAttrs& a, Dim in, Dim out) {
  if (a.mode == Mode::kNearest) return out;
  const Dim reach = a.mode == Mode::kCubic ? 2 : 1;
  // 2 * ceil(reach / scale) per position, and the scale is never below out / (2 * in).
  return a.antialias ? Dim(2) * (Dim(2) * reach * in + out * Dim(2)) + Dim(16) : Dim(2) * reach * out;
}

void write_taps(const ResampleAttrs& a, const ResampleAxis& axis, int32_t* index, float* weight) {
  const int64_t taps = tap_count(a, axis);
  for (int64_t i = 0; i < axis.out; ++i) {
    const float x = source_position(a, axis, i);
    const bool outside = !(x >= 0 && x <= static_cast<float>(axis.in - 1));
    if (outside && a.coordinates == Coordinates::kTfCropAndResize) {
      for (int64_t t = 0; t < taps; ++t) index[t * axis.out + i] = kOutside, weight[t * axis.out + i] = 0;
      continue;
    }
    // Twice the axis is farther than any coordinate goes, and keeps the arithmetic finite.
    const auto far = static_cast<float>(2 * axis.in);
    write_position(a, axis, taps, std::isnan(x) ? 0 : std::clamp(x, -far, far), index + i, weight + i);
  }
}

}  // namespace plimsoll
