// Trigonometric and hyperbolic functions on Highway vectors of float and double, once per target: Highway's
// own, with the ends of their ranges as C has them.
#if defined(PLIMSOLL_KERNELS_TRIGONOMETRY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_TRIGONOMETRY_INL_H_
#undef PLIMSOLL_KERNELS_TRIGONOMETRY_INL_H_
#else
#define PLIMSOLL_KERNELS_TRIGONOMETRY_INL_H_
#endif

#include <cmath>

#include "kernels/min_max-inl.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {

// Highway's reduction by multiples of pi holds up to here; beyond it, lane by lane through libm.
inline constexpr float kMostReduced = 30000.0f;

template <class D, class V, class F, class Scalar>
HWY_INLINE V within_reduction(D d, V x, F f, Scalar scalar) {
  if (HWY_LIKELY(hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, kMostReduced))))) return f(x);
  HWY_ALIGN hn::TFromD<D> lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = scalar(lanes[i]);
  return hn::Load(d, lanes);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_sin(D d, V x) {
  return within_reduction(
      d, x, [d](V v) HWY_ATTR { return hn::Sin(d, v); }, [](hn::TFromD<D> v) { return std::sin(v); });
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_cos(D d, V x) {
  return within_reduction(
      d, x, [d](V v) HWY_ATTR { return hn::Cos(d, v); }, [](hn::TFromD<D> v) { return std::cos(v); });
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_tan(D d, V x) {
  return within_reduction(
      d, x, [d](V v) HWY_ATTR { return hn::Div(hn::Sin(d, v), hn::Cos(d, v)); },
      [](hn::TFromD<D> v) { return std::tan(v); });
}

// (t + t / (t + 1)) / 2 with t = e^|x| - 1; above 20 half of e^|x|, in two factors that do not overflow.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_sinh(D d, V x) {
  const V half = hn::Set(d, 0.5f), one = hn::Set(d, 1.0f), most = hn::Set(d, 20.0f);
  const V magnitude = hn::Abs(x);
  const V t = v_expm1(d, v_min(most, magnitude));
  const V small = hn::Mul(half, hn::Add(t, hn::Div(t, hn::Add(t, one))));
  const V root = v_exp(d, hn::Mul(half, magnitude));
  const V large = hn::Mul(hn::Mul(half, root), root);
  return hn::CopySign(hn::IfThenElse(hn::Gt(magnitude, most), large, small), x);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_cosh(D d, V x) {
  const V half = hn::Set(d, 0.5f);
  const V root = v_exp(d, hn::Mul(half, hn::Abs(x)));
  return hn::Add(hn::Mul(hn::Mul(half, root), root), hn::Div(half, hn::Mul(root, root)));
}

// Infinity and NaN stay what they are.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_asinh(D d, V x) {
  const V most = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::max());
  return hn::IfThenElse(hn::Le(hn::Abs(x), most), hn::Asinh(d, x), x);
}

// NaN below 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_acosh(D d, V x) {
  const V most = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::max());
  const V y = hn::IfThenElse(hn::Le(x, most), hn::Acosh(d, x), x);
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, 1.0f)), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), y);
}

// Infinite at 1 and -1, NaN beyond.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_atanh(D d, V x) {
  const V one = hn::Set(d, 1.0f), magnitude = hn::Abs(x);
  const V pole = hn::CopySign(hn::Set(d, std::numeric_limits<float>::infinity()), x);
  const V y = hn::IfThenElse(hn::Lt(magnitude, one), hn::Atanh(d, x), pole);
  return hn::IfThenElse(hn::Le(magnitude, one), y, hn::Set(d, std::numeric_limits<float>::quiet_NaN()));
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
