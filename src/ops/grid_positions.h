// What GridSample and its gradient share: where a position of the grid lies in the image.
#pragma once

#include <algorithm>
#include <cmath>

#include "graph/op_def.h"

namespace plimsoll {

enum class SampleMode : uint8_t { kNearest, kLinear, kCubic };
enum class SamplePadding : uint8_t { kZeros, kBorder, kReflection };

struct SampleAttrs {
  SampleMode mode = SampleMode::kLinear;
  SamplePadding padding = SamplePadding::kZeros;
  bool align_corners = false;
};

inline constexpr size_t kMaxSampleTaps = 256;
const void* grid_sample_attrs(AttrContext& c);

inline int64_t taps_along(SampleMode mode) {
  return mode == SampleMode::kNearest ? 1 : mode == SampleMode::kLinear ? 2 : 4;
}

template <typename F>
struct SampleAxis {
  int64_t size = 1;
  F low = 0, high = 0;  // borders that reflection mirrors at
};

// Of an image whose dimensions begin with samples and channels.
template <typename F>
void set_sample_axes(const SampleAttrs& a, std::span<const int64_t> image, SampleAxis<F>* axes) {
  for (size_t d = 0; d + 2 < image.size(); ++d) {
    axes[d].size = image[d + 2];
    axes[d].low = a.align_corners ? F{0} : F(-0.5);
    axes[d].high = static_cast<F>(image[d + 2]) - (a.align_corners ? F{1} : F(0.5));
  }
}

// Mirrors at both borders until the position is between them. `slope`, if asked for, is 1 or -1.
template <typename F>
F reflect(F x, const SampleAxis<F>& axis, F* slope = nullptr) {
  const F range = axis.high - axis.low;
  if (x >= axis.low && x <= axis.high) return x;
  if (!(range > 0) || !std::isfinite(x)) return axis.low;
  const F distance = x < axis.low ? axis.low - x : x - axis.high;
  const F times = std::floor(distance / range);
  const F rest = distance - times * range;
  const bool from_low = (std::fmod(times, F{2}) == 0) == (x < axis.low);
  if (slope != nullptr) *slope = from_low == (x < axis.low) ? F{-1} : F{1};
  return from_low ? axis.low + rest : axis.high - rest;
}

// The element that index `at` means, or -1 for none.
template <typename F>
int64_t element_of(F at, SamplePadding padding, const SampleAxis<F>& axis) {
  const F last = static_cast<F>(axis.size - 1);
  if (at >= 0 && at <= last) return static_cast<int64_t>(at);
  if (padding == SamplePadding::kZeros || axis.size == 0) return -1;
  if (padding == SamplePadding::kReflection) at = std::trunc(reflect(at, axis));
  return at >= 0 ? static_cast<int64_t>(std::min(at, last)) : 0;
}

inline constexpr double kSampleAlpha = -0.75;

template <typename F>
void cubic_weights(F t, F* w) {
  constexpr F kAlpha = F(kSampleAlpha);
  const auto near = [](F x) { return ((kAlpha + 2) * x - (kAlpha + 3)) * x * x + 1; };
  const auto far = [](F x) { return ((kAlpha * x - 5 * kAlpha) * x + 8 * kAlpha) * x - 4 * kAlpha; };
  w[0] = far(t + 1), w[1] = near(t), w[2] = near(1 - t), w[3] = far(2 - t);
}

// Their derivatives.
template <typename F>
void cubic_slopes(F t, F* w) {
  constexpr F kAlpha = F(kSampleAlpha);
  const auto near = [](F x) { return (3 * (kAlpha + 2) * x - 2 * (kAlpha + 3)) * x; };
  const auto far = [](F x) { return (3 * kAlpha * x - 10 * kAlpha) * x + 8 * kAlpha; };
  w[0] = far(t + 1), w[1] = near(t), w[2] = -near(1 - t), w[3] = -far(2 - t);
}

// Elements and weights along one axis for a normalized coordinate; `slopes`, if asked for, are how fast the
// weights change with the coordinate.
template <typename F>
void axis_taps(const SampleAttrs& a, const SampleAxis<F>& axis, F coordinate, int64_t* elements, F* weights,
               F* slopes = nullptr) {
  const F size = static_cast<F>(axis.size);
  F at = a.align_corners ? (coordinate + 1) / 2 * (size - 1) : ((coordinate + 1) * size - 1) / 2;
  F speed = (a.align_corners ? size - 1 : size) / 2;
  if (std::isnan(at)) at = -1, speed = 0;
  if (a.mode == SampleMode::kNearest) at = std::nearbyint(at);
  if (at < axis.low || at > axis.high) {
    // Cubic weights take from the border as it goes on outside, as in PyTorch; beyond two elements all are
    // the same.
    if (a.padding == SamplePadding::kBorder && a.mode == SampleMode::kCubic) {
      at = std::clamp(at, F{-2}, size + 1);
    } else if (a.padding == SamplePadding::kBorder) {
      at = std::clamp(at, F{0}, std::max(size - 1, F{0})), speed = 0;
    }
    if (a.padding == SamplePadding::kReflection) {
      F direction = 1;
      at = reflect(at, axis, &direction);
      speed *= direction;
    }
  }
  if (a.mode == SampleMode::kNearest) {
    elements[0] = element_of(at, a.padding, axis);
    weights[0] = 1;
    if (slopes != nullptr) slopes[0] = 0;
    return;
  }
  const F floor = std::floor(at), t = at - floor;
  if (a.mode == SampleMode::kLinear) {
    weights[0] = 1 - t, weights[1] = t;
    if (slopes != nullptr) slopes[0] = -1, slopes[1] = 1;
  } else {
    cubic_weights(t, weights);
    if (slopes != nullptr) cubic_slopes(t, slopes);
  }
  const int64_t count = taps_along(a.mode);
  const F first = a.mode == SampleMode::kLinear ? floor : floor - 1;
  for (int64_t i = 0; i < count; ++i) elements[i] = element_of(first + static_cast<F>(i), a.padding, axis);
  for (int64_t i = 0; slopes != nullptr && i < count; ++i)
    slopes[i] = std::isfinite(t) ? slopes[i] * speed : 0;
  if (!std::isfinite(t)) std::fill_n(weights, count, F{0});
}

// The taps of a position: offsets into a plane and weights; those outside have offset -1. With `slope_of`, an
// axis, weights are how fast they change with its coordinate.
template <typename F>
void position_taps(const SampleAttrs& a, const SampleAxis<F>* axes, size_t space, const F* coordinates,
                   int64_t* offsets, F* weights, size_t slope_of = SIZE_MAX) {
  int64_t count = 1;
  offsets[0] = 0, weights[0] = 1;
  const int64_t along = taps_along(a.mode);
  for (size_t d = 0; d < space; ++d) {
    int64_t elements[4];
    F factors[4], slopes[4];
    axis_taps(a, axes[d], coordinates[space - 1 - d], elements, factors, slopes);
    if (d == slope_of) std::copy_n(slopes, along, factors);
    for (int64_t i = count; i-- > 0;) {  // from behind: the list grows in place
      const int64_t offset = offsets[i];
      const F weight = weights[i];
      for (int64_t k = along; k-- > 0;) {
        const bool outside = offset < 0 || elements[k] < 0;
        offsets[i * along + k] = outside ? -1 : offset * axes[d].size + elements[k];
        weights[i * along + k] = weight * factors[k];
      }
    }
    count *= along;
  }
}

}  // namespace plimsoll
