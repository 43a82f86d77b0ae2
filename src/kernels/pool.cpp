#include "kernels/pool.h"

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

// Inputs of one output pixel: `rows` x `columns` of them, at constant distances.
struct Taps {
  const float* first;
  int64_t rows, columns;
  int64_t row_stride, column_stride;
};

struct Max {
  static FloatVec start() { return hn::Set(FloatTag(), std::numeric_limits<float>::lowest()); }
  static FloatVec join(FloatVec a, FloatVec b) { return hn::Max(a, b); }
};
struct Sum {
  static FloatVec start() { return hn::Zero(FloatTag()); }
  static FloatVec join(FloatVec a, FloatVec b) { return hn::Add(a, b); }
};

template <class Join, int kVecs>
HWY_INLINE void pool_vectors(const Taps& t, int64_t c, int64_t lanes, FloatVec factor, float* y) {
  FloatVec acc[kVecs];
  HWY_UNROLL(4)
  for (int v = 0; v < kVecs; ++v) acc[v] = Join::start();
  for (int64_t row = 0; row < t.rows; ++row) {
    const float* x = t.first + row * t.row_stride + c;
    for (int64_t column = 0; column < t.columns; ++column, x += t.column_stride) {
      HWY_UNROLL(4)
      for (int v = 0; v < kVecs; ++v)
        acc[v] = Join::join(acc[v], load_lanes(x + v * kFloatLanes, kVecs > 1 ? kFloatLanes : lanes));
    }
  }
  HWY_UNROLL(4)
  for (int v = 0; v < kVecs; ++v)
    store_lanes(hn::Mul(acc[v], factor), y + c + v * kFloatLanes, kVecs > 1 ? kFloatLanes : lanes);
}

template <class Join>
HWY_INLINE void pool_pixel(const Taps& t, int64_t channels, float factor, float* y) {
  const FloatVec f = hn::Set(FloatTag(), factor);
  int64_t c = 0;
  for (; c + 4 * kFloatLanes <= channels; c += 4 * kFloatLanes)
    pool_vectors<Join, 4>(t, c, kFloatLanes, f, y);
  for (; c < channels; c += kFloatLanes) pool_vectors<Join, 1>(t, c, channels - c, f, y);
}

struct Range {
  int64_t first, last;
};

// Taps inside [0, size).
Range inside(int64_t start, int64_t kernel, int64_t dilation, int64_t size) {
  const int64_t first = start >= 0 ? 0 : std::min(kernel, ceil_div(-start, dilation));
  const int64_t last = start >= size ? first : std::min(kernel, (size - 1 - start) / dilation + 1);
  return {first, std::max(first, last)};
}

template <class Join>
void pool(const PoolShape& s, bool average, bool count_padding, const float* x, float* y, int threads) {
  parallel_for(threads, s.batch * s.out_h, [&](int64_t task) {
    const int64_t image = task / s.out_h;
    const int64_t top = task % s.out_h * s.stride_h - s.pad_top;
    const Range rows = inside(top, s.kernel_h, s.dilation_h, s.in_h);
    const int64_t padded_rows = inside(top, s.kernel_h, s.dilation_h, s.in_h + s.pad_bottom).last;
    float* out = y + task * s.out_w * s.channels;
    for (int64_t column = 0; column < s.out_w; ++column, out += s.channels) {
      const int64_t left = column * s.stride_w - s.pad_left;
      const Range columns = inside(left, s.kernel_w, s.dilation_w, s.in_w);
      const int64_t padded_columns = inside(left, s.kernel_w, s.dilation_w, s.in_w + s.pad_right).last;
      Taps t{x, rows.last - rows.first, columns.last - columns.first, s.dilation_h * s.in_w * s.channels,
             s.dilation_w * s.channels};
      const int64_t count = count_padding ? padded_rows * padded_columns : t.rows * t.columns;
      if (t.rows > 0 && t.columns > 0)
        t.first = x + ((image * s.in_h + top + rows.first * s.dilation_h) * s.in_w + left +
                       columns.first * s.dilation_w) *
                          s.channels;
      pool_pixel<Join>(t, s.channels, average && count > 0 ? 1.0f / static_cast<float>(count) : 1.0f, out);
    }
  });
}

}  // namespace

void PoolMax(const PoolShape& s, const float* x, float* y, int threads) {
  pool<Max>(s, false, false, x, y, threads);
}
void PoolAverage(const PoolShape& s, bool count_padding, const float* x, float* y, int threads) {
  pool<Sum>(s, true, count_padding, x, y, threads);
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
HWY_EXPORT(PoolMax);
HWY_EXPORT(PoolAverage);

namespace {

PoolShape whole_image(int64_t batch, int64_t pixels, int64_t channels) {
  PoolShape s;
  s.batch = batch, s.channels = channels;
  s.in_w = s.kernel_w = pixels;
  return s;
}

}  // namespace

void max_pool(const PoolShape& shape, const float* x, float* y, int threads) {
  HWY_DYNAMIC_DISPATCH(PoolMax)(shape, x, y, threads);
}

void average_pool(const PoolShape& shape, bool count_padding, const float* x, float* y, int threads) {
  HWY_DYNAMIC_DISPATCH(PoolAverage)(shape, count_padding, x, y, threads);
}

void global_max_pool(int64_t batch, int64_t pixels, int64_t channels, const float* x, float* y, int threads) {
  max_pool(whole_image(batch, pixels, channels), x, y, threads);
}

void global_average_pool(int64_t batch, int64_t pixels, int64_t channels, const float* x, float* y,
                         int threads) {
  average_pool(whole_image(batch, pixels, channels), false, x, y, threads);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
