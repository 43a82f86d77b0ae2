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

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE float row_max(const float* x, size_t count) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  V m0 = hn::Set(d, -std::numeric_limits<float>::infinity()), m1 = m0;
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

// y = exp(x - shift); returns the sum.
HWY_INLINE float exp_row(const float* x, float* y, size_t count, float shift) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const V vshift = hn::Set(d, shift);
  V s0 = hn::Zero(d), s1 = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const V e0 = v_exp(d, hn::Sub(hn::LoadU(d, x + i), vshift));
    const V e1 = v_exp(d, hn::Sub(hn::LoadU(d, x + i + lanes), vshift));
    hn::StoreU(e0, d, y + i);
    hn::StoreU(e1, d, y + i + lanes);
    s0 = hn::Add(s0, e0);
    s1 = hn::Add(s1, e1);
  }
  for (; i < count; i += lanes) {
    const size_t width = count - i < lanes ? count - i : lanes;
    const V e = v_exp(d, hn::Sub(load_tail(d, x + i, width), vshift));
    store_tail(d, e, y + i, width);
    s0 = hn::Add(s0, hn::IfThenElseZero(hn::FirstN(d, width), e));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
}

// y = x * a + b
HWY_INLINE void affine_row(const float* x, float* y, size_t count, float a, float b) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const V va = hn::Set(d, a), vb = hn::Set(d, b);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::MulAdd(hn::LoadU(d, x + i), va, vb), d, y + i);
  if (i < count) store_tail(d, hn::MulAdd(load_tail(d, x + i, count - i), va, vb), y + i, count - i);
}

HWY_NOINLINE void softmax_rows(bool logarithm, const float* x, float* y, int64_t rows, int64_t cols) {
  const D d;
  const auto n = static_cast<size_t>(cols);
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const float largest = row_max(x, n);
    if (logarithm) {
      const V shift = hn::Set(d, largest);
      const double sum = row_sum(d, x, n, [=](V v) HWY_ATTR { return v_exp(d, hn::Sub(v, shift)); });
      affine_row(x, y, n, 1.0f, -(largest + static_cast<float>(std::log(sum))));
    } else {
      const float sum = exp_row(x, y, n, largest);
      affine_row(y, y, n, 1.0f / sum, 0.0f);
    }
  }
}

// One vector of columns; the last one may be narrower.
template <bool kLogarithm>
HWY_INLINE void softmax_column(const float* x, float* y, int64_t rows, size_t width, int64_t stride) {
  const D d;
  V largest = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (int64_t r = 0; r < rows; ++r) largest = hn::Max(largest, load_tail(d, x + r * stride, width));
  V sum = hn::Zero(d);
  for (int64_t r = 0; r < rows; ++r) {
    const V e = v_exp(d, hn::Sub(load_tail(d, x + r * stride, width), largest));
    sum = hn::Add(sum, e);
    if (!kLogarithm) store_tail(d, e, y + r * stride, width);
  }
  const V last = kLogarithm ? hn::Add(largest, v_log(d, sum)) : hn::Div(hn::Set(d, 1.0f), sum);
  for (int64_t r = 0; r < rows; ++r) {
    const V v = load_tail(d, (kLogarithm ? x : y) + r * stride, width);
    store_tail(d, kLogarithm ? hn::Sub(v, last) : hn::Mul(v, last), y + r * stride, width);
  }
}

HWY_NOINLINE void softmax_columns(bool logarithm, const float* x, float* y, int64_t rows, int64_t cols,
                                  int64_t stride) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t c = 0; c < cols; c += lanes) {
    const auto width = static_cast<size_t>(cols - c < lanes ? cols - c : lanes);
    if (logarithm) {
      softmax_column<true>(x + c, y + c, rows, width, stride);
    } else {
      softmax_column<false>(x + c, y + c, rows, width, stride);
    }
  }
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(softmax_rows);
HWY_EXPORT(softmax_columns);

void softmax_rows_f32(bool logarithm, const float* x, float* y, int64_t rows, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(softmax_rows)(logarithm, x, y, rows, cols);
}

void softmax_columns_f32(bool logarithm, const float* x, float* y, int64_t rows, int64_t cols,
                         int64_t stride) {
  HWY_DYNAMIC_DISPATCH(softmax_columns)(logarithm, x, y, rows, cols, stride);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
