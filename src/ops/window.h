// Sliding windows: the attributes that convolutions and poolings share, and their arithmetic.
#pragma once

#include <array>
#include <span>

#include "graph/region.h"

namespace plimsoll {

inline constexpr size_t kMaxSpatial = 6;
using Spatial = std::array<int64_t, kMaxSpatial>;

enum class AutoPad : uint8_t { kNotSet, kValid, kSameUpper, kSameLower };

struct WindowAttrs {
  std::span<const int64_t> kernel, strides, dilations, pads;  // empty: the default
  AutoPad auto_pad = AutoPad::kNotSet;
  bool channels_last = false;

  int64_t stride(size_t i) const { return strides.empty() ? 1 : strides[i]; }
  int64_t dilation(size_t i) const { return dilations.empty() ? 1 : dilations[i]; }
  int64_t pad_begin(size_t i) const { return use_pads() ? pads[i] : 0; }
  int64_t pad_end(size_t i) const { return use_pads() ? pads[pads.size() / 2 + i] : 0; }
  bool is_same() const { return auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower; }

 private:
  bool use_pads() const { return auto_pad == AutoPad::kNotSet && !pads.empty(); }
};

// Reads kernel_shape, strides, dilations, pads, auto_pad and channels_last; every number fits 31 bits.
void read_window(AttrContext& c, WindowAttrs& window);
// The first four alone.
void read_window_lists(AttrContext& c, WindowAttrs& window);
// The lists have one entry (pads: two) per spatial dimension of an input of this rank.
void check_window(const NodeContext& c, const WindowAttrs& window, size_t rank);

// Where the channels and spatial dimensions of a tensor are.
inline size_t channel_axis(const WindowAttrs& w, size_t rank) {
  return w.channels_last ? rank - 1 : 1;
}
inline size_t spatial_axis(const WindowAttrs& w, size_t i) {
  return w.channels_last ? i + 1 : i + 2;
}

// Size of the output along spatial dimension i, for a kernel of `kernel` taps.
Dim window_output(const WindowAttrs& w, size_t i, Dim in, Dim kernel, bool ceil_mode);
// Padding before the input for concrete sizes.
int64_t window_begin(const WindowAttrs& w, size_t i, int64_t in, int64_t kernel, int64_t out);

// Regions of input 0 along the spatial dimensions, and the padding that is left of them. `counts_padding`:
// the result depends on how much of a window is padding.
void region_window(RegionContext& c, const WindowAttrs& w, std::span<const int64_t> kernel,
                   bool counts_padding);

// A window over concrete tensors; `batch` and `channels` are outside the spatial dimensions.
struct Window {
  size_t rank = 0;  // spatial dimensions
  int64_t batch = 0, channels = 0;
  Spatial in{}, out{}, kernel{}, stride{}, dilation{}, begin{}, end{};  // end: padding behind
  bool channels_last = false;
};
Window make_window(const WindowAttrs& w, std::span<const int64_t> x, std::span<const int64_t> y,
                   std::span<const int64_t> kernel);

inline int64_t volume(size_t rank, const Spatial& sizes) {
  int64_t count = 1;
  for (size_t i = 0; i < rank; ++i) count *= sizes[i];
  return count;
}

// Element strides of a tensor (N, channels, spatial...) in its layout.
struct SpatialStrides {
  int64_t batch = 0, channel = 0;
  Spatial spatial{};
};
SpatialStrides strides_of(size_t rank, int64_t channels, const Spatial& sizes, bool channels_last);

// Taps [first, last) of output position `out` that lie inside the input, along dimension i.
struct TapRange {
  int64_t first, last;
};
inline TapRange tap_range(const Window& w, size_t i, int64_t out) {
  const int64_t start = out * w.stride[i] - w.begin[i];
  // Asked for every output: most need no division.
  if (start >= 0 && start + (w.kernel[i] - 1) * w.dilation[i] < w.in[i]) return {0, w.kernel[i]};
  const int64_t first = start >= 0 ? 0 : std::min(w.kernel[i], ceil_div(-start, w.dilation[i]));
  const int64_t last =
      start >= w.in[i] ? first : std::min(w.kernel[i], (w.in[i] - 1 - start) / w.dilation[i] + 1);
  return {first, std::max(first, last)};
}

// Counts through positions below `sizes`; false when it starts again at zero.
inline bool next_position(size_t rank, const Spatial& sizes, Spatial& at) {
  for (size_t i = rank; i-- > 0;) {
    if (++at[i] < sizes[i]) return true;
    at[i] = 0;
  }
  return false;
}

}  // namespace plimsoll
