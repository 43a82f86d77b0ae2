// Activations on Highway vectors, once per target: include inside a foreach_target translation unit.
#if defined(PLIMSOLL_KERNELS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_ACTIVATION_INL_H_
#undef PLIMSOLL_KERNELS_ACTIVATION_INL_H_
#else
#define PLIMSOLL_KERNELS_ACTIVATION_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/activation.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V = hn::Vec<D>>
HWY_INLINE V horner(D, V, V sum) {
  return sum;
}
template <class D, class V = hn::Vec<D>, class... Rest>
HWY_INLINE V horner(D d, V x, V sum, float next, Rest... rest) {
  return horner(d, x, hn::MulAdd(sum, x, hn::Set(d, next)), rest...);
}

// x86's min and max return the second operand on NaN: the value goes second so that NaN passes.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V clamp(D d, V x, float low, float high) {
  return hn::Min(hn::Set(d, high), hn::Max(hn::Set(d, low), x));
}

// Relative error below 2e-7 on [-87.3, 88.7]; outside it saturates, and NaN passes.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V fast_exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  x = clamp(d, x, -87.33654f, 88.37626f);
  const V n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504f)));
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  const V p = horner(d, r, hn::Set(d, 1.9875691500e-4f), 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                     1.6666665459e-1f, 5.0000001201e-1f);
  const V e = hn::Add(hn::MulAdd(hn::Mul(r, r), p, r), hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127)));
  return hn::Mul(e, hn::BitCast(d, exponent));
}

// p / q for moderate q. A division of 16 lanes takes as long as 16 multiplications: one Newton step on the
// 14-bit reciprocal and one correction of the quotient are faster and err by less than 2 units.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V quotient(D d, V p, V q) {
#if HWY_TARGET == HWY_AVX3
  V r = hn::ApproximateReciprocal(q);
  r = hn::MulAdd(r, hn::NegMulAdd(q, r, hn::Set(d, 1.0f)), r);
  const V x = hn::Mul(p, r);
  return hn::MulAdd(r, hn::NegMulAdd(q, x, p), x);
#else
  (void)d;
  return hn::Div(p, q);
#endif
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return quotient(d, one, hn::Add(one, fast_exp(d, hn::Neg(x))));
}

// Rational approximations; a few units in the last place.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V fast_tanh(D d, V x) {
  x = clamp(d, x, -9.0f, 9.0f);
  const V s = hn::Mul(x, x);
  const V p =
      horner(d, s, hn::Set(d, -2.76076847742355e-16f), 2.00018790482477e-13f, -8.60467152213735e-11f,
             5.12229709037114e-08f, 1.48572235717979e-05f, 6.37261928875436e-04f, 4.89352455891786e-03f);
  const V q = horner(d, s, hn::Set(d, 1.19825839466702e-06f), 1.18534705686654e-04f, 2.26843463243900e-03f,
                     4.89352518554385e-03f);
  return quotient(d, hn::Mul(x, p), q);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V fast_erf(D d, V x) {
  x = clamp(d, x, -4.0f, 4.0f);
  const V s = hn::Mul(x, x);
  const V p =
      horner(d, s, hn::Set(d, -2.72614225801306e-10f), 2.77068142495902e-08f, -2.10102402082508e-06f,
             -5.69250639462346e-05f, -7.34990630326855e-04f, -2.95459980854025e-03f, -1.60960333262415e-02f);
  const V q = horner(d, s, hn::Set(d, -1.45660718464996e-05f), -2.13374055278905e-04f, -1.68282697438203e-03f,
                     -7.37332916720468e-03f, -1.42647390514189e-02f);
  return quotient(d, hn::Mul(x, p), q);
}

// Calls body with a function of one vector, so that the choice is made once and not per vector.
template <class D, class Body>
HWY_INLINE void with_activation(D d, Activation f, Body&& body) {
  using V = hn::Vec<D>;
  const auto linear = [=](V x) HWY_ATTR { return hn::MulAdd(hn::Set(d, f.a), x, hn::Set(d, f.b)); };
  switch (f.kind) {
    case ActivationKind::kNone:
      return body([=](V x) HWY_ATTR { return x; });
    case ActivationKind::kRelu:
      return body([=](V x) HWY_ATTR { return hn::Max(hn::Zero(d), x); });
    case ActivationKind::kLeakyRelu:
      return body([=](V x) HWY_ATTR {
        return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, f.a)), x);
      });
    case ActivationKind::kClip:
      return body([=](V x) HWY_ATTR { return clamp(d, x, f.a, f.b); });
    case ActivationKind::kSigmoid:
      return body([=](V x) HWY_ATTR { return sigmoid(d, x); });
    case ActivationKind::kSilu:
      return body([=](V x) HWY_ATTR { return hn::Mul(x, sigmoid(d, x)); });
    case ActivationKind::kTanh:
      return body([=](V x) HWY_ATTR { return fast_tanh(d, x); });
    case ActivationKind::kGelu:
      return body([=](V x) HWY_ATTR {
        const V half = hn::Mul(x, hn::Set(d, 0.5f));
        return hn::MulAdd(half, fast_erf(d, hn::Mul(x, hn::Set(d, 0.70710678f))), half);
      });
    case ActivationKind::kHardSigmoid:
      return body([=](V x) HWY_ATTR { return clamp(d, linear(x), 0.0f, 1.0f); });
    case ActivationKind::kHardSwish:
      return body([=](V x) HWY_ATTR {
        const V gate = hn::MulAdd(x, hn::Set(d, 1.0f / 6), hn::Set(d, 0.5f));
        return hn::Mul(x, clamp(d, gate, 0.0f, 1.0f));
      });
  }
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
