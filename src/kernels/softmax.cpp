#include "kernels/softmax.h"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/row_sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {

namespace {

template <class W>
using TagFor = hn::ScalableTag<W>;
template <class W>
using VecFor = hn::Vec<TagFor<W>>;

template <class W>
HWY_INLINE W row_max(const W* x, size_t count) {
  const TagFor<W> d;
  using V = VecFor<W>;
  const size_t lanes = hn::Lanes(d);
  V m0 = hn::Set(d, -std::numeric_limits<W>::infinity()), m1 = m0;
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    m0 = hn::Max(m0, hn::LoadU(d, x + i));
    m1 = hn::Max(m1, hn::LoadU(d, x + i + lanes));
  }
  for (; i + lanes <= count; i += lanes) m0 = hn::Max(m0, hn::LoadU(d, x + i));
  if (i < count)
    m1 = hn::Max(m1, hn::IfThenElse(hn::FirstN(d, count - i), load_tail(d, x + i, count - i), m1));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(m0, m1)));
}

// y = f(x)
template <class W, class F>
HWY_INLINE void map_row(const W* x, W* y, size_t count, F f) {
  const TagFor<W> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(f(hn::LoadU(d, x + i)), d, y + i);
  if (i < count) store_tail(d, f(load_tail(d, x + i, count - i)), y + i, count - i);
}

// Rows of kVecs vectors, of which the last may be narrower: from registers, read and written once.
template <int kVecs, bool kLogarithm, class W>
HWY_INLINE void softmax_short_rows(const W* x, W* y, int64_t rows, size_t cols) {
  const TagFor<W> d;
  using V = VecFor<W>;
  const size_t lanes = hn::Lanes(d), full = (kVecs - 1) * lanes, width = cols - full;
  const auto inside = hn::FirstN(d, width);
  const V lowest = hn::Set(d, -std::numeric_limits<W>::infinity());
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    V v[kVecs];
    HWY_UNROLL(4)
    for (int k = 0; k + 1 < kVecs; ++k) v[k] = hn::LoadU(d, x + static_cast<size_t>(k) * lanes);
    v[kVecs - 1] = hn::IfThenElse(inside, load_tail(d, x + full, width), lowest);
    V largest = v[0];
    HWY_UNROLL(4)
    for (int k = 1; k < kVecs; ++k) largest = hn::Max(largest, v[k]);
    const V shift = hn::MaxOfLanes(d, largest);
    HWY_UNROLL(4)
    for (int k = 0; k < kVecs; ++k) v[k] = hn::Sub(v[k], shift);
    V sum = hn::IfThenElseZero(inside, v_exp_of_negative(d, v[kVecs - 1]));
    if (!kLogarithm) v[kVecs - 1] = sum;
    HWY_UNROLL(4)
    for (int k = 0; k + 1 < kVecs; ++k) {
      const V e = v_exp_of_negative(d, v[k]);
      if (!kLogarithm) v[k] = e;
      sum = hn::Add(sum, e);
    }
    const W total = hn::GetLane(hn::SumOfLanes(d, sum));
    const V last = hn::Set(d, kLogarithm ? std::log(total) : W{1} / total);
    HWY_UNROLL(4)
    for (int k = 0; k + 1 < kVecs; ++k)
      hn::StoreU(kLogarithm ? hn::Sub(v[k], last) : hn::Mul(v[k], last), d,
                 y + static_cast<size_t>(k) * lanes);
    const V end = kLogarithm ? hn::Sub(v[kVecs - 1], last) : hn::Mul(v[kVecs - 1], last);
    store_tail(d, end, y + full, width);
  }
}

template <int kVecs, class W>
HWY_INLINE void softmax_short_rows(bool logarithm, const W* x, W* y, int64_t rows, size_t cols) {
  if (logarithm) return softmax_short_rows<kVecs, true>(x, y, rows, cols);
  softmax_short_rows<kVecs, false>(x, y, rows, cols);
}

template <class W>
HWY_INLINE void softmax_rows(bool logarithm, const W* x, W* y, int64_t rows, int64_t cols) {
  const TagFor<W> d;
  using V = VecFor<W>;
  const auto n = static_cast<size_t>(cols);
  switch ((n + hn::Lanes(d) - 1) / hn::Lanes(d)) {
    case 1:
      return softmax_short_rows<1>(logarithm, x, y, rows, n);
    case 2:
      return softmax_short_rows<2>(logarithm, x, y, rows, n);
    case 3:
      return softmax_short_rows<3>(logarithm, x, y, rows, n);
    case 4:
      return softmax_short_rows<4>(logarithm, x, y, rows, n);
  }
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const W largest = row_max(x, n);
    if (logarithm) {
      const V shift = hn::Set(d, largest);
      const double sum =
          row_sum(d, x, n, [=](V v) HWY_ATTR { return v_exp_of_negative(d, hn::Sub(v, shift)); });
      const V log = hn::Set(d, static_cast<W>(std::log(sum)));  // less than what a large x would round away
      map_row(x, y, n, [=](V v) HWY_ATTR { return hn::Sub(hn::Sub(v, shift), log); });
    } else {
      const V inverse = hn::Set(d, W{1} / exp_row(d, x, y, n, largest));
      map_row(y, y, n, [=](V v) HWY_ATTR { return hn::Mul(v, inverse); });
    }
  }
}

// One vector of columns; the last one may be narrower.
template <bool kLogarithm, class W>
HWY_INLINE void softmax_column(const W* x, W* y, int64_t rows, size_t width, int64_t stride) {
  const TagFor<W> d;
  using V = VecFor<W>;
  V largest = hn::Set(d, -std::numeric_limits<W>::infinity());
  for (int64_t r = 0; r < rows; ++r) largest = hn::Max(largest, load_tail(d, x + r * stride, width));
  V sum = hn::Zero(d);
  for (int64_t r = 0; r < rows; ++r) {
    const V e = v_exp_of_negative(d, hn::Sub(load_tail(d, x + r * stride, width), largest));
    sum = hn::Add(sum, e);
    if (!kLogarithm) store_tail(d, e, y + r * stride, width);
  }
  const V last = kLogarithm ? v_log(d, sum) : hn::Div(hn::Set(d, 1.0f), sum);
  for (int64_t r = 0; r < rows; ++r) {
    const V v = load_tail(d, (kLogarithm ? x : y) + r * stride, width);
    store_tail(d, kLogarithm ? hn::Sub(hn::Sub(v, largest), last) : hn::Mul(v, last), y + r * stride, width);
  }
}

template <class W>
HWY_INLINE void softmax_columns(bool logarithm, const W* x, W* y, int64_t rows, int64_t cols,
                                int64_t stride) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(TagFor<W>()));
  for (int64_t c = 0; c < cols; c += lanes) {
    const auto width = static_cast<size_t>(cols - c < lanes ? cols - c : lanes);
    if (logarithm) {
      softmax_column<true>(x + c, y + c, rows, width, stride);
    } else {
      softmax_column<false>(x + c, y + c, rows, width, stride);
    }
  }
}

}  // namespace

HWY_NOINLINE void rows_of_f32(bool logarithm, const float* x, float* y, int64_t rows, int64_t cols) {
  softmax_rows(logarithm, x, y, rows, cols);
}
HWY_NOINLINE void columns_of_f32(bool logarithm, const float* x, float* y, int64_t rows, int64_t cols,
                                 int64_t stride) {
  softmax_columns(logarithm, x, y, rows, cols, stride);
}
HWY_NOINLINE void rows_of_f64(bool logarithm, const double* x, double* y, int64_t rows, int64_t cols) {
  softmax_rows(logarithm, x, y, rows, cols);
}
HWY_NOINLINE void columns_of_f64(bool logarithm, const double* x, double* y, int64_t rows, int64_t cols,
                                 int64_t stride) {
  softmax_columns(logarithm, x, y, rows, cols, stride);
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(rows_of_f32);
HWY_EXPORT(columns_of_f32);
HWY_EXPORT(rows_of_f64);
HWY_EXPORT(columns_of_f64);

void softmax_rows_f32(bool logarithm, const float* x, float* y, int64_t rows, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(rows_of_f32)(logarithm, x, y, rows, cols);
}
void softmax_columns_f32(bool logarithm, const float* x, float* y, int64_t rows, int64_t cols,
                         int64_t stride) {
  HWY_DYNAMIC_DISPATCH(columns_of_f32)(logarithm, x, y, rows, cols, stride);
}

void softmax_rows_f64(bool logarithm, const double* x, double* y, int64_t rows, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(rows_of_f64)(logarithm, x, y, rows, cols);
}
void softmax_columns_f64(bool logarithm, const double* x, double* y, int64_t rows, int64_t cols,
                         int64_t stride) {
  HWY_DYNAMIC_DISPATCH(columns_of_f64)(logarithm, x, y, rows, cols, stride);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
