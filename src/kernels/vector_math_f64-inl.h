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

// 2^n for whole n in [-1022, 1023]: added to 1.5 * 2^52, n + 1023 stands in the lowest bits.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V power_of_two_f64(D d, V n) {
  const hn::RebindToUnsigned<D> du;
  return hn::BitCast(d, hn::ShiftLeft<52>(hn::BitCast(du, hn::Add(n, hn::Set(d, 0x1.8p52 + 1023)))));
}

// e^x = 2^n (1 + p) with |ln(1 + p)| <= ln(2) / 2; p, the series of e^r - 1, is accurate relative to itself.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V reduced_expm1_f64(D d, V x, V& n) {
  n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504088896340736)));
  // ln(2) in two parts: n times the first, of 32 bits, is exact.
  V r = hn::NegMulAdd(n, hn::Set(d, 0x1.62e42feep-1), x);
  r = hn::NegMulAdd(n, hn::Set(d, 1.90821492927058770002e-10), r);
  const V p = polynomial(d, r, hn::Set(d, 1.0 / 6227020800), 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                         1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5);
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

// Below 1 the series; above, 1 - e^(-x^2) f((x - 3) / (x + 3)) / x, where f is fitted on [1, 6], from where
// on erf rounds to 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V erf_f64(D d, V x) {
  const V one = hn::Set(d, 1.0), three = hn::Set(d, 3.0);
  const V s = hn::Mul(x, x);
  const V near = hn::Mul(
      x, polynomial(d, s, hn::Set(d, 4.763348040515068e-18), -9.063970842808673e-17, 1.6342614095367152e-15,
                    -2.7835162072109215e-14, 4.4632242632864775e-13, -6.7113668551641105e-12,
                    9.422759064650411e-11, -1.2290555301717928e-09, 1.4807192815879218e-08,
                    -1.6365844691234924e-07, 1.6462114365889248e-06, -1.492565035840625e-05,
                    0.00012055332981789664, -0.0008548327023450853, 0.005223977625442188,
                    -0.026866170645131252, 0.11283791670955126, -0.37612638903183754, 1.1283791670955126));
  const V magnitude = v_min(hn::Set(d, 6.0), v_max(one, hn::Abs(x)));
  const V t = hn::Div(hn::Sub(magnitude, three), hn::Add(magnitude, three));
  const V f =
      polynomial(d, t, hn::Set(d, -2.610812332754207e-06), -1.0984994722900036e-05, 7.0643345343920115e-06,
                 6.90915475301513e-05, -8.469145459289256e-05, -0.0004125676442033244, 0.0012428816699246456,
                 0.0009108246422574642, -0.014019825805898112, 0.04635026325779179, -0.09546975030393538,
                 0.139880547602935, -0.14658304803290642, 0.09530622695922278, 0.5370034535441699);
  const V below = hn::Div(hn::Mul(exp_f64(d, hn::Neg(hn::Mul(magnitude, magnitude))), f), magnitude);
  return hn::IfThenElse(hn::Gt(hn::Abs(x), one), hn::CopySign(hn::Sub(one, below), x), near);
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
