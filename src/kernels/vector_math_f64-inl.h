// What vector_math-inl.h needs of its own for vectors of double, once per target. Within a few units in the
// last place; measured against libm by tests/kernels/unary_test.cpp.
#if defined(PLIMSOLL_KERNELS_VECTOR_MATH_F64_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_VECTOR_MATH_F64_INL_H_
#undef PLIMSOLL_KERNELS_VECTOR_MATH_F64_INL_H_
#else
#define PLIMSOLL_KERNELS_VECTOR_MATH_F64_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/min_max-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
inline constexpr bool kIsDouble = sizeof(hn::TFromD<D>) == 8;

// first * x^k + ... + last
template <class D, class V = hn::Vec<D>>
HWY_INLINE V polynomial(D, V, V sum) {
  return sum;
}
template <class D, class V = hn::Vec<D>, class... Rest>
HWY_INLINE V polynomial(D d, V x, V sum, hn::TFromD<D> next, Rest... rest) {
  return polynomial(d, x, hn::MulAdd(sum, x, hn::Set(d, next)), rest...);
}

// x86's min and max return the second operand on NaN: the value goes second so that NaN passes.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_clamp(D d, V x, hn::TFromD<D> low, hn::TFromD<D> high) {
  return v_min(hn::Set(d, high), v_max(hn::Set(d, low), x));
}

// 2^n for whole n in [-1022, 1023], and 0 for -1023: added to 1.5 * 2^52, n + 1023 stands in the lowest bits.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V power_of_two_f64(D d, V n) {
  const hn::RebindToUnsigned<D> du;
  return hn::BitCast(d, hn::ShiftLeft<52>(hn::BitCast(du, hn::Add(n, hn::Set(d, 0x1.8p52 + 1023)))));
}

// e^x = 2^n (1 + p) with |ln(1 + p)| <= ln(2) / 2; p, fitted there, is accurate relative to itself. x is
// within [-1024, 1024].
template <class D, class V = hn::Vec<D>>
HWY_INLINE V reduced_expm1_f64(D d, V x, V& n) {
  const V shift = hn::Set(d, 0x1.8p52);
  n = hn::Sub(hn::MulAdd(x, hn::Set(d, 1.44269504088896340736), shift), shift);
  // ln(2) in two parts: n times the first, of 32 bits, is exact.
  V r = hn::NegMulAdd(n, hn::Set(d, 0x1.62e42feep-1), x);
  r = hn::NegMulAdd(n, hn::Set(d, 1.90821492927058770002e-10), r);
  const V p =
      polynomial(d, r, hn::Set(d, 2.5100424157005067e-08), 2.7620138719733994e-07, 2.7557268378684192e-06,
                 2.480152119021773e-05, 0.00019841269863105968, 0.0013888888917281794, 0.008333333333330051,
                 0.04166666666662399, 0.16666666666666669, 0.5000000000000001);
  return hn::MulAdd(hn::Mul(r, r), p, r);
}

// From 0 over the subnormals to infinity.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_f64(D d, V x) {
  V n;
  const V p = reduced_expm1_f64(d, v_clamp(d, x, -746.0, 710.0), n);
  const V half = hn::Floor(hn::Mul(n, hn::Set(d, 0.5)));
  const V scale = power_of_two_f64(d, half);
  return hn::Mul(hn::MulAdd(p, scale, scale), power_of_two_f64(d, hn::Sub(n, half)));
}

// For x in [-700, 700] (the caller clamps).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V expm1_f64(D d, V x) {
  V n;
  const V p = reduced_expm1_f64(d, x, n);
  const V scale = power_of_two_f64(d, n);
  return hn::MulAdd(p, scale, hn::Sub(scale, hn::Set(d, 1.0)));
}

// 1 / (1 + e^-x), through e^-|x|, so that the divisor stays between 1 and 2. It is 0 where that power would
// not be a normal number.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid_f64(D d, V x) {
  const V one = hn::Set(d, 1.0);
  // From 709.09 on n is -1023, for which the power of two is 0.
  V n;
  const V p = reduced_expm1_f64(d, hn::Neg(v_min(hn::Set(d, 709.2), hn::Abs(x))), n);
  const V scale = power_of_two_f64(d, n);
  const V e = hn::MulAdd(p, scale, scale);
  return hn::Div(hn::IfNegativeThenElse(x, e, one), hn::Add(one, e));
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
