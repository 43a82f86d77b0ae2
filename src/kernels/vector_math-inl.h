// Elementary functions on Highway vectors of float and double, once per target: include inside a
// foreach_target translation unit. Errors are measured against double libm by tests/kernels/unary_test.cpp.
#if defined(PLIMSOLL_KERNELS_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_VECTOR_MATH_INL_H_
#undef PLIMSOLL_KERNELS_VECTOR_MATH_INL_H_
#else
#define PLIMSOLL_KERNELS_VECTOR_MATH_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <limits>

#include "kernels/erf_f64-inl.h"
#include "kernels/min_max-inl.h"
#include "kernels/storage-inl.h"
#include "kernels/vector_math_f64-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ---- the end of a row: fewer elements than lanes -------------------------------------------------

template <class D, class T>
HWY_INLINE hn::Vec<D> load_tail(D d, const T* from, size_t count) {
  return load_first(d, from, count);
}

template <class D, class T>
HWY_INLINE void store_tail(D d, hn::Vec<D> value, T* to, size_t count) {
  store_first(d, value, to, count);
}

// ---- functions -------------------------------------------------------------------------------------

template <class D, class VI>
HWY_INLINE hn::Vec<D> power_of_two(D d, VI exponent) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(exponent, hn::Set(di, 127))));
}

// e^x = 2^n (1 + p) with |ln(1 + p)| <= ln(2) / 2; p is accurate relative to itself.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V reduced_expm1(D d, V x, V& n) {
  n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504f)));
  // ln(2) in two parts: n times the first is exact.
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  const V p =
      polynomial(d, r, hn::Set(d, 1.39261818e-3f), 8.36317763e-3f, 4.16665546e-2f, 1.66665770e-1f, 0.5f);
  return hn::MulAdd(hn::Mul(r, r), p, r);
}

// From 0 over the subnormals to infinity.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_exp(D d, V x) {
  if constexpr (kIsDouble<D>) {
    return exp_f64(d, x);
  } else {
    const hn::RebindToSigned<D> di;
    V n;
    const V p = reduced_expm1(d, v_clamp(d, x, -104.0f, 89.0f), n);
    const auto exponent = hn::ConvertTo(di, n);
    const auto half = hn::ShiftRight<1>(exponent);
    const V scale = power_of_two(d, half);
    return hn::Mul(hn::MulAdd(p, scale, scale), power_of_two(d, hn::Sub(exponent, half)));
  }
}

// For x in [-80, 80] (the caller clamps).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_expm1(D d, V x) {
  if constexpr (kIsDouble<D>) {
    return expm1_f64(d, x);
  } else {
    const hn::RebindToSigned<D> di;
    V n;
    const V p = reduced_expm1(d, x, n);
    const V scale = power_of_two(d, hn::ConvertTo(di, n));
    return hn::MulAdd(p, scale, hn::Sub(scale, hn::Set(d, 1.0f)));
  }
}

// p / q for moderate q. A division of 16 lanes takes as long as 16 multiplications: one Newton step on the
// 14-bit reciprocal and one correction of the quotient are faster and err by less than 2 units.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V quotient(D d, V p, V q) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (!kIsDouble<D>) {
    V r = hn::ApproximateReciprocal(q);
    r = hn::MulAdd(r, hn::NegMulAdd(q, r, hn::Set(d, 1.0f)), r);
    const V x = hn::Mul(p, r);
    return hn::MulAdd(r, hn::NegMulAdd(q, x, p), x);
  }
#endif
  (void)d;
  return hn::Div(p, q);
}

// 1 / q for moderate q; errs by about one unit.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V inverse(D d, V q) {
  const V one = hn::Set(d, 1.0f);
#if HWY_TARGET == HWY_AVX3
  if constexpr (!kIsDouble<D>) {
    const V r = hn::ApproximateReciprocal(q);
    return hn::MulAdd(r, hn::NegMulAdd(q, r, one), r);
  }
#endif
  return hn::Div(one, q);
}

// 1 + e^-x for x in [-88, 88] (the caller clamps), for activations of every pixel of a network. The power is
// off by 2e-7 at most.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V one_plus_exp_of_minus(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  // The sum's last bits are n + 127 for the nearest integer n; 0 for x = 88, which makes the power 0.
  const V rounding = hn::Set(d, 12582912.0f + 127.0f);
  const V sum = hn::NegMulAdd(x, hn::Set(d, 1.44269504f), rounding);
  const V n = hn::Sub(sum, rounding);
  V r = hn::NegMulSub(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  // Halves of the polynomial beside each other: what waits for what is the longest part of this.
  const V square = hn::Mul(r, r);
  const V high = polynomial(d, r, hn::Set(d, 8.31252057e-3f), 4.18901555e-2f);
  const V low = polynomial(d, r, hn::Set(d, 1.66671142e-1f), 4.99992311e-1f);
  const V power = hn::MulAdd(hn::MulAdd(high, square, low), square, hn::Add(r, hn::Set(d, 1.0f)));
  const V scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, sum)));
  return hn::MulAdd(power, scale, hn::Set(d, 1.0f));
}

// Both ends are exact: below -87.33, where the result would not be a normal number, it is 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_sigmoid(D d, V x) {
  if constexpr (kIsDouble<D>) {
    return sigmoid_f64(d, x);
  } else {
    const V y = inverse(d, one_plus_exp_of_minus(d, v_clamp(d, x, -87.33f, 88.0f)));
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.33f)), y);
  }
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_tanh(D d, V x) {
  const V magnitude =
      v_min(hn::Set(d, kIsDouble<D> ? 20 : 9.02f), hn::Abs(x));  // the rest rounds to 1; NaN passes
  const V t = v_expm1(d, hn::Add(magnitude, magnitude));
  return hn::CopySign(quotient(d, t, hn::Add(t, hn::Set(d, 2.0f))), x);
}

// A rational function fitted on [0, 3.93], above which erf rounds to 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_erf(D d, V x) {
  if constexpr (kIsDouble<D>) {
    return erf_f64(d, x);
  } else {
    const V one = hn::Set(d, 1.0f);
    const V limit = hn::Set(d, 3.93f);
    const V s = hn::Mul(x, x);
    const V p = polynomial(d, s, hn::Set(d, -1.49004385e-8f), 5.03410660e-6f, 3.91574494e-4f, 3.83311075e-3f,
                           5.44354533e-2f, 1.83842283e-1f, 1.12837918f);
    const V q = polynomial(d, s, hn::Set(d, 6.64254965e-5f), 1.32034609e-3f, 1.54704336e-2f, 1.13660589e-1f,
                           4.96259634e-1f, 1.0f);
    const V y = quotient(d, hn::Mul(x, p), q);
    return hn::IfThenElse(hn::Gt(hn::Abs(x), limit), hn::CopySign(one, x), y);
  }
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_log(D d, V x) {
  const float infinity = std::numeric_limits<float>::infinity();
  const V zero = hn::Zero(d);
  V y = hn::Log(d, x);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Set(d, -infinity), y);
  y = hn::IfThenElse(hn::Eq(x, hn::Set(d, infinity)), x, y);
  return hn::IfThenElse(hn::Ge(x, zero), y, hn::Set(d, std::numeric_limits<float>::quiet_NaN()));
}

// log(1 + e^x)
template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_softplus(D d, V x) {
  const V tail = hn::Log1p(d, v_exp(d, hn::Neg(hn::Abs(x))));
  return hn::Add(v_max(hn::Zero(d), x), tail);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_gelu(D d, V x) {
  const V half = hn::Mul(x, hn::Set(d, 0.5f));
  return hn::MulAdd(
      half, v_erf(d, hn::Mul(x, hn::Set(d, static_cast<hn::TFromD<D>>(0.70710678118654752440)))), half);
}

// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_gelu_tanh(D d, V x) {
  const V half = hn::Mul(x, hn::Set(d, 0.5f));
  const V factor = polynomial(d, hn::Mul(x, x), hn::Set(d, static_cast<hn::TFromD<D>>(0.035677408136300125)),
                              static_cast<hn::TFromD<D>>(0.79788456080286535588));
  return hn::MulAdd(half, v_tanh(d, hn::Mul(x, factor)), half);
}

// x < 0 ? a (e^x - 1) : x
template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_elu(D d, V x, V a) {
  const V below = hn::Mul(a, v_expm1(d, v_clamp(d, x, kIsDouble<D> ? -700.0f : -80.0f, 0.0f)));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, x);
}

// x < 0 ? a (e^(x/a) - 1) : x; for a < 0 the power grows without bound.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_celu(D d, V x, V a) {
  const V ratio = hn::Div(x, a);
  const V small = v_expm1(d, v_clamp(d, ratio, -80.0f, 80.0f));
  const V power = hn::IfThenElse(hn::Gt(ratio, hn::Set(d, 80.0f)), v_exp(d, ratio), small);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(a, power), x);
}

// x tanh(log(1 + e^x)) = x n / (n + 2) with n = e^x (e^x + 2), which rounds to x above 20.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_mish(D d, V x) {
  const V two = hn::Set(d, 2.0f);
  const V e = v_exp(d, v_min(hn::Set(d, 20.0f), x));
  const V n = hn::Mul(e, hn::Add(e, two));
  return hn::Mul(x, hn::Div(n, hn::Add(n, two)));
}

// x < -a ? x + b : x > a ? x - b : 0
template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_shrink(D, V x, V a, V b) {
  const V above = hn::IfThenElseZero(hn::Gt(x, a), hn::Sub(x, b));
  return hn::IfThenElse(hn::Lt(x, hn::Neg(a)), hn::Add(x, b), above);
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
