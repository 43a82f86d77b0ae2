#include "kernels/unary_gradient.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/unary_gradient.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lanes-inl.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

template <class D>
HWY_INLINE hn::Vec<D> real(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}

// The normal distribution's share below x, and x times its density.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_slope(D d, V x) {
  const V half = real(d, 0.5);
  const V below = hn::MulAdd(half, v_erf(d, hn::Mul(x, real(d, 0.70710678118654752440))), half);
  const V density = hn::Mul(v_exp(d, hn::Mul(hn::Mul(x, x), real(d, -0.5))), real(d, 0.39894228040143267794));
  // Infinity has a density of 0.
  const V term = hn::IfThenElse(hn::Gt(hn::Abs(x), real(d, 40.0)), hn::Zero(d), hn::Mul(x, density));
  return hn::Add(below, term);
}

// With t = tanh(x (k + k c x^2)): (1 + t + x (1 - t^2) (k + 3 k c x^2)) / 2
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_tanh_slope(D d, V v) {
  constexpr double kScale = 0.79788456080286535588, kCubic = 0.044715;
  const V x = v_clamp(d, v, -40.0f, 40.0f);  // beyond, t is 1
  const V one = real(d, 1), square = hn::Mul(x, x);
  const V t = v_tanh(d, hn::Mul(x, polynomial(d, square, real(d, kScale * kCubic), kScale)));
  const V inner = polynomial(d, square, real(d, 3 * kScale * kCubic), kScale);
  const V steep = hn::Mul(hn::NegMulAdd(t, t, one), hn::Mul(x, inner));
  return hn::Mul(real(d, 0.5), hn::Add(hn::Add(one, t), steep));
}

// s (1 + a x (1 - s)) with s = sigmoid(a x)
template <class D, class V = hn::Vec<D>>
HWY_INLINE V swish_slope(D d, V x, V a) {
  const V one = real(d, 1), scaled = hn::Mul(a, x), s = v_sigmoid(d, scaled);
  // Where s is 0 or 1, a product with infinity would be no number.
  const V bounded = v_clamp(d, scaled, -1000.0f, 1000.0f);
  return hn::Mul(s, hn::MulAdd(bounded, hn::Sub(one, s), one));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V hard_swish_slope(D d, V x) {
  const V three = real(d, 3);
  const V between = hn::MulAdd(x, real(d, 1.0 / 3), real(d, 0.5));
  const V below = hn::IfThenElseZero(hn::Not(hn::Le(x, hn::Neg(three))), between);
  return hn::IfThenElse(hn::Gt(x, three), real(d, 1), below);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V erf_slope(D d, V x) {
  return hn::Mul(v_exp(d, hn::Neg(hn::Mul(x, x))), real(d, 1.12837916709551257390));
}

template <class T, class F>
HWY_INLINE void map_gradient(const T* v, const T* dy, T* dx, int64_t count, F slope) {
  for (int64_t i = 0; i < count; i += kLanesOf<T>)
    store_lanes(hn::Mul(load_lanes(dy + i, count - i), slope(load_lanes(v + i, count - i))), dx + i,
                count - i);
}

template <class T>
HWY_NOINLINE void gradient_of(const Unary& f, const T* v, const T* dy, T* dx, int64_t count) {
  using V = VecOf<T>;
  const TagOf<T> d;
  const V a = hn::Set(d, LaneOf<T>{f.a}), one = real(d, 1);
  switch (f.kind) {
    case UnaryKind::kErf:
      return map_gradient(v, dy, dx, count, [=](V x) HWY_ATTR { return erf_slope(d, x); });
    case UnaryKind::kGelu:
      return map_gradient(v, dy, dx, count, [=](V x) HWY_ATTR { return gelu_slope(d, x); });
    case UnaryKind::kGeluTanh:
      return map_gradient(v, dy, dx, count, [=](V x) HWY_ATTR { return gelu_tanh_slope(d, x); });
    case UnaryKind::kHardSwish:
      return map_gradient(v, dy, dx, count, [=](V x) HWY_ATTR { return hard_swish_slope(d, x); });
    case UnaryKind::kSwish:
      return map_gradient(v, dy, dx, count, [=](V x) HWY_ATTR { return swish_slope(d, x, a); });
    case UnaryKind::kSigmoid:
      return map_gradient(v, dy, dx, count, [=](V y) HWY_ATTR { return hn::Mul(y, hn::Sub(one, y)); });
    default:  // kTanh
      return map_gradient(v, dy, dx, count, [=](V y) HWY_ATTR { return hn::NegMulAdd(y, y, one); });
  }
}

}  // namespace

#define PLIMSOLL_UNARY_GRADIENT(T, name)                                                \
  void name##_gradient(const Unary& f, const T* v, const T* dy, T* dx, int64_t count) { \
    gradient_of<T>(f, v, dy, dx, count);                                                \
  }
PLIMSOLL_UNARY_GRADIENT(float, f32)
PLIMSOLL_UNARY_GRADIENT(double, f64)
PLIMSOLL_UNARY_GRADIENT(Float16, f16)
PLIMSOLL_UNARY_GRADIENT(BFloat16, bf16)
#undef PLIMSOLL_UNARY_GRADIENT

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

#define PLIMSOLL_UNARY_GRADIENT(T, name)                                                  \
  HWY_EXPORT(name##_gradient);                                                            \
  template <>                                                                             \
  void unary_gradient<T>(const Unary& f, const T* v, const T* dy, T* dx, int64_t count) { \
    HWY_DYNAMIC_DISPATCH(name##_gradient)(f, v, dy, dx, count);                           \
  }
PLIMSOLL_UNARY_GRADIENT(float, f32)
PLIMSOLL_UNARY_GRADIENT(double, f64)
PLIMSOLL_UNARY_GRADIENT(Float16, f16)
PLIMSOLL_UNARY_GRADIENT(BFloat16, bf16)
#undef PLIMSOLL_UNARY_GRADIENT

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
