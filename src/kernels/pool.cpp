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
#include "kernels/min_max-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

// Inputs of one output pixel: `planes` x `rows` x `columns` of them, at constant distances.
template <class T>
struct Taps {
  const T* first;
  int64_t planes, rows, columns;
  int64_t plane_stride, row_stride, column_stride;
};

// The lowest finite number.
template <class T>
LaneOf<T> lowest() {
  if (std::is_same_v<T, Float16>) return -65504.0f;
  if (std::is_same_v<T, BFloat16>) return -0x1.fep127f;
  return std::numeric_limits<LaneOf<T>>::lowest();
}

// Slower than Max, which forgets a NaN with the next tap.
struct MaxOrNaN {
  static constexpr bool kForgetsNaN = false;
  template <class T>
  static VecOf<T> start() {
    return hn::Set(TagOf<T>(), lowest<T>());
  }
  template <class V>
  static V join(V a, V b) {
    return hn::IfThenElse(hn::IsNaN(b), b, v_max(b, a));
  }
};
struct Max : MaxOrNaN {
  static constexpr bool kForgetsNaN = true;
  template <class V>
  static V join(V a, V b) {
    return hn::Max(a, b);
  }
};
struct Sum {
  static constexpr bool kForgetsNaN = false;
  template <class T>
  static VecOf<T> start() {
    return hn::Zero(TagOf<T>());
  }
  template <class V>
  static V join(V a, V b) {
    return hn::Add(a, b);
  }
};

template <class Join, int kVecs, class T>
HWY_INLINE void pool_vectors(const Taps<T>& t, int64_t c, int64_t lanes, VecOf<T> factor, T* y) {
  VecOf<T> acc[kVecs], sum[kVecs];  // a sum of taps is NaN if one of them is
  HWY_UNROLL(4)
  for (int v = 0; v < kVecs; ++v) {
    acc[v] = Join::template start<T>();
    sum[v] = hn::Zero(TagOf<T>());
  }
  for (int64_t plane = 0; plane < t.planes; ++plane) {
    for (int64_t row = 0; row < t.rows; ++row) {
      const T* x = t.first + plane * t.plane_stride + row * t.row_stride + c;
      for (int64_t column = 0; column < t.columns; ++column, x += t.column_stride) {
        HWY_UNROLL(4)
        for (int v = 0; v < kVecs; ++v) {
          const VecOf<T> tap = load_lanes(x + v * kLanesOf<T>, kVecs > 1 ? kLanesOf<T> : lanes);
          acc[v] = Join::join(acc[v], tap);
          if constexpr (Join::kForgetsNaN) sum[v] = hn::Add(sum[v], tap);
        }
      }
    }
  }
  if constexpr (Join::kForgetsNaN) {
    HWY_UNROLL(4)
    for (int v = 1; v < kVecs; ++v) sum[0] = hn::Add(sum[0], sum[v]);
    if (!hn::AllFalse(TagOf<T>(), hn::IsNaN(sum[0])))
      return pool_vectors<MaxOrNaN, kVecs>(t, c, lanes, factor, y);
  }
  HWY_UNROLL(4)
  for (int v = 0; v < kVecs; ++v)
    store_lanes(hn::Mul(acc[v], factor), y + c + v * kLanesOf<T>, kVecs > 1 ? kLanesOf<T> : lanes);
}

template <class Join, class T>
HWY_INLINE void pool_pixel(const Taps<T>& t, int64_t channels, LaneOf<T> factor, T* y) {
  const VecOf<T> f = hn::Set(TagOf<T>(), factor);
  int64_t c = 0;
  for (; c + 4 * kLanesOf<T> <= channels; c += 4 * kLanesOf<T>)
    pool_vectors<Join, 4>(t, c, kLanesOf<T>, f, y);
  for (; c < channels; c += kLanesOf<T>) pool_vectors<Join, 1>(t, c, channels - c, f, y);
}

struct Range {
  int64_t first, last;
};

// Taps inside [0, size). Asked for every pixel: with few channels the divisions would be what takes the time.
Range inside(int64_t start, int64_t kernel, int64_t dilation, int64_t size) {
  if (start >= 0 && start + (kernel - 1) * dilation < size) return {0, kernel};
  const int64_t first = start >= 0 ? 0 : std::min(kernel, ceil_div(-start, dilation));
  const int64_t last = start >= size ? first : std::min(kernel, (size - 1 - start) / dilation + 1);
  return {first, std::max(first, last)};
}

// ---- maxima of windows that overlap: along the rows first, then along the columns
// --------------------------

constexpr int64_t kLineColumns = 128;  // of the input, at most

bool is_worth_a_line(const PoolShape& s) {
  const bool is_flat = s.kernel_d == 1 && s.stride_d == 1 && s.pad_front == 0;
  return is_flat && s.kernel_h >= 2 && s.kernel_w >= 3 && s.stride_w == 1 && s.dilation_w == 1 &&
         s.in_w <= kLineColumns;
}

// Channels [c, c + kVecs vectors) of one row of outputs, from the row at `x` on. False if there may be a NaN
// among what it reads, which this would forget.
template <int kVecs, class T>
HWY_INLINE bool max_of_row(const PoolShape& s, const T* x, Range rows, int64_t c, T* y) {
  const TagOf<T> d;
  constexpr int64_t kWidth = kVecs * kLanesOf<T>;
  const int64_t lanes = kVecs > 1 ? kLanesOf<T> : s.channels - c;
  HWY_ALIGN LaneOf<T> line[kLineColumns * kWidth];
  VecOf<T> sum = hn::Zero(d);
  for (int64_t column = 0; column < s.in_w; ++column) {
    VecOf<T> acc[kVecs];
    HWY_UNROLL(4)
    for (int v = 0; v < kVecs; ++v) acc[v] = Max::start<T>();
    for (int64_t row = rows.first; row < rows.last; ++row) {
      const T* from = x + (row * s.dilation_h * s.in_w + column) * s.channels + c;
      HWY_UNROLL(4)
      for (int v = 0; v < kVecs; ++v) {
        const VecOf<T> tap = load_lanes(from + v * kLanesOf<T>, lanes);
        acc[v] = hn::Max(acc[v], tap);
        sum = hn::Add(sum, tap);
      }
    }
    HWY_UNROLL(4)
    for (int v = 0; v < kVecs; ++v) hn::StoreU(acc[v], d, line + column * kWidth + v * kLanesOf<T>);
  }
  if (!hn::AllFalse(d, hn::IsNaN(sum))) return false;
  for (int64_t column = 0; column < s.out_w; ++column) {
    const Range taps = inside(column - s.pad_left, s.kernel_w, 1, s.in_w);
    VecOf<T> acc[kVecs];
    HWY_UNROLL(4)
    for (int v = 0; v < kVecs; ++v) acc[v] = Max::start<T>();
    for (int64_t tap = taps.first; tap < taps.last; ++tap) {
      const LaneOf<T>* from = line + (column - s.pad_left + tap) * kWidth;
      HWY_UNROLL(4)
      for (int v = 0; v < kVecs; ++v) acc[v] = hn::Max(acc[v], hn::LoadU(d, from + v * kLanesOf<T>));
    }
    HWY_UNROLL(4)
    for (int v = 0; v < kVecs; ++v) store_lanes(acc[v], y + column * s.channels + c + v * kLanesOf<T>, lanes);
  }
  return true;
}

template <class T>
HWY_INLINE bool max_of_row(const PoolShape& s, const T* x, Range rows, T* y) {
  int64_t c = 0;
  for (; c + 4 * kLanesOf<T> <= s.channels; c += 4 * kLanesOf<T>) {
    if (!max_of_row<4>(s, x, rows, c, y)) return false;
  }
  for (; c < s.channels; c += kLanesOf<T>) {
    if (!max_of_row<1>(s, x, rows, c, y)) return false;
  }
  return true;
}

template <class Join, class T>
void pool(const PoolShape& s, bool average, bool count_padding, const T* x, T* y, int threads) {
  using W = LaneOf<T>;
  constexpr int64_t kWorthSharing = 32 << 10;
  const int64_t all =
      s.batch * s.out_d * s.out_h * s.out_w * s.channels * s.kernel_d * s.kernel_h * s.kernel_w;
  const bool by_lines = is_worth_a_line(s);
  parallel_for(all < kWorthSharing ? 1 : threads, s.batch * s.out_d * s.out_h, [&](int64_t task) {
    const int64_t image = task / s.out_h / s.out_d;
    const int64_t front = task / s.out_h % s.out_d * s.stride_d - s.pad_front;
    const int64_t top = task % s.out_h * s.stride_h - s.pad_top;
    const Range planes = inside(front, s.kernel_d, s.dilation_d, s.in_d);
    const Range rows = inside(top, s.kernel_h, s.dilation_h, s.in_h);
    const int64_t padded_rows = inside(front, s.kernel_d, s.dilation_d, s.in_d + s.pad_back).last *
                                inside(top, s.kernel_h, s.dilation_h, s.in_h + s.pad_bottom).last;
    const int64_t row_stride = s.in_w * s.channels, plane_stride = s.in_h * row_stride;
    T* out = y + task * s.out_w * s.channels;
    if constexpr (Join::kForgetsNaN) {
      if (by_lines &&
          max_of_row(s, x + (image * s.in_d + front) * plane_stride + top * row_stride, rows, out))
        return;
    }
    for (int64_t column = 0; column < s.out_w; ++column, out += s.channels) {
      const int64_t left = column * s.stride_w - s.pad_left;
      const Range columns = inside(left, s.kernel_w, s.dilation_w, s.in_w);
      const int64_t padded_columns = inside(left, s.kernel_w, s.dilation_w, s.in_w + s.pad_right).last;
      Taps<T> t{x,
                planes.last - planes.first,
                rows.last - rows.first,
                columns.last - columns.first,
                s.dilation_d * plane_stride,
                s.dilation_h * row_stride,
                s.dilation_w * s.channels};
      const int64_t taps = t.planes * t.rows * t.columns;
      const int64_t count = count_padding ? padded_rows * padded_columns : taps;
      if (taps > 0)
        t.first = x + (image * s.in_d + front + planes.first * s.dilation_d) * plane_stride +
                  (top + rows.first * s.dilation_h) * row_stride +
                  (left + columns.first * s.dilation_w) * s.channels;
      pool_pixel<Join>(t, s.channels, average && count > 0 ? W{1} / static_cast<W>(count) : W{1}, out);
    }
  });
}

}  // namespace

void max_of_f32(const PoolShape& s, const float* x, float* y, int threads) {
  pool<Max>(s, false, false, x, y, threads);
}
void average_of_f32(const PoolShape& s, bool count_padding, const float* x, float* y, int threads) {
  pool<Sum>(s, true, count_padding, x, y, threads);
}
void max_of_f64(const PoolShape& s, const double* x, double* y, int threads) {
  pool<Max>(s, false, false, x, y, threads);
}
void average_of_f64(const PoolShape& s, bool count_padding, const double* x, double* y, int threads) {
  pool<Sum>(s, true, count_padding, x, y, threads);
}
void max_of_f16(const PoolShape& s, const Float16* x, Float16* y, int threads) {
  pool<Max>(s, false, false, x, y, threads);
}
void average_of_f16(const PoolShape& s, bool count_padding, const Float16* x, Float16* y, int threads) {
  pool<Sum>(s, true, count_padding, x, y, threads);
}
void max_of_bf16(const PoolShape& s, const BFloat16* x, BFloat16* y, int threads) {
  pool<Max>(s, false, false, x, y, threads);
}
void average_of_bf16(const PoolShape& s, bool count_padding, const BFloat16* x, BFloat16* y, int threads) {
  pool<Sum>(s, true, count_padding, x, y, threads);
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
HWY_EXPORT(max_of_f32);
HWY_EXPORT(average_of_f32);
HWY_EXPORT(max_of_f64);
HWY_EXPORT(average_of_f64);
HWY_EXPORT(max_of_f16);
HWY_EXPORT(average_of_f16);
HWY_EXPORT(max_of_bf16);
HWY_EXPORT(average_of_bf16);

void max_pool(const PoolShape& shape, const float* x, float* y, int threads) {
  HWY_DYNAMIC_DISPATCH(max_of_f32)(shape, x, y, threads);
}
void average_pool(const PoolShape& shape, bool count_padding, const float* x, float* y, int threads) {
  HWY_DYNAMIC_DISPATCH(average_of_f32)(shape, count_padding, x, y, threads);
}
void max_pool(const PoolShape& shape, const double* x, double* y, int threads) {
  HWY_DYNAMIC_DISPATCH(max_of_f64)(shape, x, y, threads);
}
void average_pool(const PoolShape& shape, bool count_padding, const double* x, double* y, int threads) {
  HWY_DYNAMIC_DISPATCH(average_of_f64)(shape, count_padding, x, y, threads);
}
void max_pool(const PoolShape& shape, const Float16* x, Float16* y, int threads) {
  HWY_DYNAMIC_DISPATCH(max_of_f16)(shape, x, y, threads);
}
void average_pool(const PoolShape& shape, bool count_padding, const Float16* x, Float16* y, int threads) {
  HWY_DYNAMIC_DISPATCH(average_of_f16)(shape, count_padding, x, y, threads);
}
void max_pool(const PoolShape& shape, const BFloat16* x, BFloat16* y, int threads) {
  HWY_DYNAMIC_DISPATCH(max_of_bf16)(shape, x, y, threads);
}
void average_pool(const PoolShape& shape, bool count_padding, const BFloat16* x, BFloat16* y, int threads) {
  HWY_DYNAMIC_DISPATCH(average_of_bf16)(shape, count_padding, x, y, threads);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
