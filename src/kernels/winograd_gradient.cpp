#include "kernels/winograd_gradient.h"

#include <algorithm>

#include "base/checked.h"
#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/winograd_gradient.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm_pack-inl.h"
#include "kernels/winograd_transform-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

constexpr int kSide = 4, kPoints = 16;

// Where tile `tile` begins in dY.
struct TileAt {
  int64_t image, row, column;
};
TileAt tile_at(const ConvShape& s, int64_t tile) {
  const int64_t columns = ceil_div(s.out_w, 2), rows = ceil_div(s.out_h, 2);
  return {tile / (rows * columns), tile / columns % rows * 2, tile % columns * 2};
}

// The pixels of a square of kSize x kSize, `zeros` where there are none.
template <int kSize>
void find_pixels(const float* image, int64_t height, int64_t width, int64_t stride, int64_t row,
                 int64_t column, const float* zeros, const float** at) {
  for (int i = 0; i < kSize; ++i) {
    for (int j = 0; j < kSize; ++j) {
      const int64_t y = row + i, x = column + j;
      const bool inside = y >= 0 && y < height && x >= 0 && x < width;
      at[i * kSize + j] = inside ? image + (y * width + x) * stride : zeros;
    }
  }
}

// The transposed transform of outputs: a line of 2 becomes 4 points.
HWY_INLINE VectorLine<4> gradient_line(const VectorLine<2>& in) {
  const auto& y = in.at;
  return {{y[0], hn::Add(y[0], y[1]), hn::Sub(y[0], y[1]), hn::Neg(y[1])}};
}

// The transposed transform of weights: 4 points become a line of 3.
HWY_INLINE VectorLine<3> taps_line(const VectorLine<4>& in) {
  const auto& m = in.at;
  const FloatVec sum = times(0.5f, hn::Add(m[1], m[2]));
  return {{hn::Add(m[0], sum), times(0.5f, hn::Sub(m[1], m[2])), hn::Add(sum, m[3])}};
}

HWY_INLINE void x_tile(const float* const* at, int64_t from, int64_t lanes, float* to, int64_t stride) {
  const FloatTag d;
  transform_input<2>([&](int i, int j) HWY_ATTR { return load_lanes(at[i * kSide + j] + from, lanes); },
                     [&](int i, int j, FloatVec v)
                         HWY_ATTR { hn::StoreU(v, d, to + (i * kSide + j) * stride); });
}

HWY_INLINE void dy_tile(const float* const* at, int64_t from, int64_t lanes, float* to, int64_t stride) {
  transform_square<2, 4>([](const VectorLine<2>& in) HWY_ATTR { return gradient_line(in); },
                         [&](int i, int j) HWY_ATTR { return load_lanes(at[i * 2 + j] + from, lanes); },
                         [&](int i, int j, FloatVec v)
                             HWY_ATTR { store_lanes(v, to + (i * kSide + j) * stride, lanes); });
}

}  // namespace

int64_t stride_of(int64_t count, int64_t channels) {
  // Matrices that are a power of two apart would meet in the same lines of the cache.
  return round_up(count * round_up(channels, kFloatLanes), 16) + 16;
}

void x_tiles(const ConvShape& s, const float* x, int64_t first, int64_t begin, int64_t end, int64_t count,
             const float* zeros, float* packed) {
  constexpr int64_t kPanel = kPanelOf<float>;
  const int64_t stride = stride_of(count, s.in_c);
  for (int64_t t = begin; t < end; ++t) {
    const TileAt tile = tile_at(s, first + t);
    const float* at[kPoints];
    find_pixels<kSide>(x + tile.image * s.in_h * s.in_w * s.in_c, s.in_h, s.in_w, s.in_c,
                       tile.row - s.pad_top, tile.column - s.pad_left, zeros, at);
    for (int64_t c = 0; c < s.in_c; c += kFloatLanes) {
      const int64_t panel = c / kPanel, width = panel_width<float>(s.in_c, panel);
      float* to = packed + panel * kPanel * count + t * width + c % kPanel;
      x_tile(at, c, s.in_c - c, to, stride);
    }
  }
}

void dy_tiles(const ConvShape& s, const float* dy, int64_t first, int64_t begin, int64_t end, int64_t count,
              int64_t channel, int64_t channels, const float* zeros, float* to) {
  const int64_t stride = stride_of(count, channels);
  for (int64_t t = begin; t < end; ++t) {
    const TileAt tile = tile_at(s, first + t);
    const float* at[4];
    find_pixels<2>(dy + tile.image * s.out_h * s.out_w * s.out_c + channel, s.out_h, s.out_w, s.out_c,
                   tile.row, tile.column, zeros, at);
    for (int64_t c = 0; c < channels; c += kFloatLanes)
      dy_tile(at, c, channels - c, to + t * channels + c, stride);
  }
}

void taps_of(int64_t channel, int64_t channels, int64_t in_c, const float* sums, float* dw) {
  const FloatTag d;
  const int64_t stride = channels * in_c;
  for (int64_t c = 0; c < in_c; c += kFloatLanes) {
    const int64_t lanes = std::min(kFloatLanes, in_c - c);
    const float* from = sums + channel * in_c + c;
    HWY_ALIGN float taps[9 * kFloatLanes];
    transform_square<4, 3>(
        [](const VectorLine<4>& in) HWY_ATTR { return taps_line(in); },
        [&](int i, int j) HWY_ATTR { return load_lanes(from + (i * kSide + j) * stride, lanes); },
        [&](int i, int j, FloatVec v) HWY_ATTR { hn::Store(v, d, taps + (i * 3 + j) * kFloatLanes); });
    float* to = dw + (channel * in_c + c) * 9;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      for (int64_t tap = 0; tap < 9; ++tap) *to++ = taps[tap * kFloatLanes + lane];
    }
  }
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(stride_of);
HWY_EXPORT(x_tiles);
HWY_EXPORT(dy_tiles);
HWY_EXPORT(taps_of);

namespace {
constexpr int64_t kTilesOfTask = 32;
}  // namespace

int64_t winograd_gradient_tiles(const ConvShape& s) {
  return checked_mul(s.batch, checked_mul(ceil_div(s.out_h, int64_t{2}), ceil_div(s.out_w, int64_t{2})));
}

int64_t winograd_gradient_stride(int64_t count, int64_t channels) {
  return HWY_DYNAMIC_DISPATCH(stride_of)(count, channels);
}

void winograd_gradient_x(const ConvShape& s, const float* x, int64_t first, int64_t count, const float* zeros,
                         float* packed, int threads) {
  parallel_for(threads, ceil_div(count, kTilesOfTask), [&](int64_t task) {
    const int64_t begin = task * kTilesOfTask, end = std::min(count, begin + kTilesOfTask);
    HWY_DYNAMIC_DISPATCH(x_tiles)(s, x, first, begin, end, count, zeros, packed);
  });
}

void winograd_gradient_dy(const ConvShape& s, const float* dy, int64_t first, int64_t count, int64_t channel,
                          int64_t channels, const float* zeros, float* to, int threads) {
  parallel_for(threads, ceil_div(count, kTilesOfTask), [&](int64_t task) {
    const int64_t begin = task * kTilesOfTask, end = std::min(count, begin + kTilesOfTask);
    HWY_DYNAMIC_DISPATCH(dy_tiles)(s, dy, first, begin, end, count, channel, channels, zeros, to);
  });
}

void winograd_gradient_weights(int64_t channels, int64_t in_c, const float* sums, float* dw, int threads) {
  parallel_for(threads, channels, [&](int64_t channel) {
    HWY_DYNAMIC_DISPATCH(taps_of)(channel, channels, in_c, sums, dw);
  });
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
