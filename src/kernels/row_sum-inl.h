// Sums along a row, and shares of it, once per target: include inside a foreach_target translation unit.
#if defined(PLIMSOLL_KERNELS_ROW_SUM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_ROW_SUM_INL_H_
#undef PLIMSOLL_KERNELS_ROW_SUM_INL_H_
#else
#define PLIMSOLL_KERNELS_ROW_SUM_INL_H_
#endif

#include <algorithm>

#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {

// The sum of f(v) over the row: four accumulators per block of 1024, blocks added in double.
template <class D, class F>
HWY_INLINE double row_sum(D d, const hn::TFromD<D>* x, size_t count, F f) {
  using V = hn::Vec<D>;
  constexpr size_t kBlock = 1024;
  const size_t lanes = hn::Lanes(d);
  double total = 0;
  for (size_t start = 0; start < count; start += kBlock) {
    const size_t end = std::min(count, start + kBlock);
    V s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
    size_t i = start;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      s0 = hn::Add(s0, f(hn::LoadU(d, x + i)));
      s1 = hn::Add(s1, f(hn::LoadU(d, x + i + lanes)));
      s2 = hn::Add(s2, f(hn::LoadU(d, x + i + 2 * lanes)));
      s3 = hn::Add(s3, f(hn::LoadU(d, x + i + 3 * lanes)));
    }
    for (; i + lanes <= end; i += lanes) s0 = hn::Add(s0, f(hn::LoadU(d, x + i)));
    if (i < end)
      s1 = hn::Add(s1, hn::IfThenElseZero(hn::FirstN(d, end - i), f(load_tail(d, x + i, end - i))));
    total += hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  }
  return total;
}

// For x of at most 0, or NaN. What would be subnormal is 0: arithmetic on such numbers takes many times as
// long, and beside a 1 they are nothing.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_exp_of_negative(D d, V x) {
  if constexpr (kIsDouble<D>) {
    return exp_f64(d, x);
  } else {
    const hn::RebindToSigned<D> di;
    const auto is_nothing = hn::Lt(x, hn::Set(d, -87.0f));
    V n;
    const V p = reduced_expm1(d, hn::IfThenZeroElse(is_nothing, x), n);
    const V scale = power_of_two(d, hn::ConvertTo(di, n));
    return hn::IfThenZeroElse(is_nothing, hn::MulAdd(p, scale, scale));
  }
}

// y = exp(x - shift), of a shift that is no less than any x; returns the sum. y may be x.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE T exp_row(D d, const T* x, T* y, size_t count, T shift) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  const V vshift = hn::Set(d, shift);
  V s0 = hn::Zero(d), s1 = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const V e0 = v_exp_of_negative(d, hn::Sub(hn::LoadU(d, x + i), vshift));
    const V e1 = v_exp_of_negative(d, hn::Sub(hn::LoadU(d, x + i + lanes), vshift));
    hn::StoreU(e0, d, y + i);
    hn::StoreU(e1, d, y + i + lanes);
    s0 = hn::Add(s0, e0);
    s1 = hn::Add(s1, e1);
  }
  for (; i < count; i += lanes) {
    const size_t width = count - i < lanes ? count - i : lanes;
    const V e = v_exp_of_negative(d, hn::Sub(load_tail(d, x + i, width), vshift));
    store_tail(d, e, y + i, width);
    s0 = hn::Add(s0, hn::IfThenElseZero(hn::FirstN(d, width), e));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
