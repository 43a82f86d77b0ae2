// The windows of a pooling one by one, tap by tap, over a few channels at a time: what gradients of poolings
// and MaxPoolTaps share. Taps inside the image are counted from 0, in order.
#pragma once

#include <algorithm>
#include <limits>

#include "ops/float_blocks.h"
#include "ops/window.h"

namespace plimsoll {

inline constexpr int64_t kPoolChannels = 64;  // at a time

class PoolWindows {
 public:
  explicit PoolWindows(const Window& window)
      : w(window),
        in(strides_of(w.rank, w.channels, w.in, w.channels_last)),
        out(strides_of(w.rank, w.channels, w.out, w.channels_last)),
        width_(w.channels_last ? std::min(kPoolChannels, w.channels) : 1) {}

  struct Taps {
    Spatial start{}, count{};
    int64_t base = 0, inside = 1, padded = 1;
  };

  // Blocks of channels of all images, and where one begins.
  int64_t blocks() const { return w.batch * ceil_div(w.channels, width_); }
  struct Block {
    int64_t from, to, width;  // elements of X and Y
  };
  Block block(int64_t index) const {
    const int64_t per_image = ceil_div(w.channels, width_), image = index / per_image,
                  channel = index % per_image * width_;
    return {image * in.batch + channel * in.channel, image * out.batch + channel * out.channel,
            std::min(width_, w.channels - channel)};
  }

  // Calls f(taps, the element of a block's outputs) for every window.
  template <typename F>
  void for_each_window(F&& f) const {
    if (volume(w.rank, w.out) == 0) return;
    Spatial at{};
    do {
      int64_t to = 0;
      for (size_t i = 0; i < w.rank; ++i) to += at[i] * out.spatial[i];
      f(taps_at(at), to);
    } while (next_position(w.rank, w.out, at));
  }

  // Calls f(offset in the image) for every tap inside it.
  template <typename F>
  void for_each_tap(const Taps& t, F&& f) const {
    Spatial tap{};
    do {
      int64_t from = t.base;
      for (size_t i = 0; i < w.rank; ++i) from += tap[i] * w.dilation[i] * in.spatial[i];
      f(from);
    } while (next_position(w.rank, t.count, tap));
  }

  // Which tap made the output of a maximum: the first of the largest. Numbers as wide as the elements make
  // vectors of the loop.
  template <typename T, typename Count>
  void find_largest(const Taps& t, const T* x, int64_t width, Count* winner) const {
    using W = WideType<T>;
    static_assert(sizeof(W) == sizeof(Count));
    W best[kPoolChannels], values[kPoolChannels];
    std::fill_n(best, width, -std::numeric_limits<W>::infinity());
    std::fill_n(winner, width, Count{0});
    Count tap = 0;
    for_each_tap(t, [&](int64_t offset) {
      widen(x + offset, values, width);
      for (int64_t i = 0; i < width; ++i) {
        const bool wins = values[i] > best[i];
        best[i] = wins ? values[i] : best[i];
        winner[i] = wins ? tap : winner[i];
      }
      ++tap;
    });
  }

  const Window& w;
  const SpatialStrides in, out;

 private:
  Taps taps_at(const Spatial& at) const {
    Taps t;
    for (size_t i = 0; i < w.rank; ++i) {
      const TapRange range = tap_range(w, i, at[i]);
      const int64_t start = at[i] * w.stride[i] - w.begin[i];
      t.count[i] = range.last - range.first;
      t.inside *= t.count[i];
      t.padded *= std::min(w.kernel[i], ceil_div(w.in[i] + w.end[i] - start, w.dilation[i]));
      t.base += (start + range.first * w.dilation[i]) * in.spatial[i];
    }
    return t;
  }

  const int64_t width_;
};

// Numbers of taps, as wide as what is compared.
template <typename T>
using TapCount = std::conditional_t<sizeof(WideType<T>) == 4, int32_t, int64_t>;

}  // namespace plimsoll
