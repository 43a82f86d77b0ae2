// Functions of one float or double, applied to arrays, once per target: what unary.cpp and unary_f64.cpp are
// made of.
#if defined(PLIMSOLL_KERNELS_UNARY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_UNARY_INL_H_
#undef PLIMSOLL_KERNELS_UNARY_INL_H_
#else
#define PLIMSOLL_KERNELS_UNARY_INL_H_
#endif

#include <cstddef>

#include "kernels/min_max-inl.h"
#include "kernels/trigonometry-inl.h"
#include "kernels/unary.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

template <class T, class F>
HWY_INLINE void map(const T* x, T* y, size_t count, F f) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(f(hn::LoadU(d, x + i)), d, y + i);
  if (i < count) store_tail(d, f(load_tail(d, x + i, count - i)), y + i, count - i);
}

#define PLIMSOLL_MAP(expression) return map(x, y, count, [=](hn::Vec<D> v) HWY_ATTR { return expression; })

template <class T, class D = hn::ScalableTag<T>>
HWY_NOINLINE void map_simple(const Unary& f, const T* x, T* y, size_t count) {
  using V = hn::Vec<D>;
  const D d;
  const V a = hn::Set(d, T{f.a});
  const V b = hn::Set(d, T{f.b});
  const V zero = hn::Zero(d);
  const V one = hn::Set(d, 1.0f);
  switch (f.kind) {
    case UnaryKind::kAbs:
      PLIMSOLL_MAP(hn::Abs(v));
    case UnaryKind::kNeg:
      PLIMSOLL_MAP(hn::Neg(v));
    case UnaryKind::kSqrt:
      PLIMSOLL_MAP(hn::Sqrt(v));
    case UnaryKind::kReciprocal:
      PLIMSOLL_MAP(hn::Div(one, v));
    case UnaryKind::kFloor:
      PLIMSOLL_MAP(hn::Floor(v));
    case UnaryKind::kCeil:
      PLIMSOLL_MAP(hn::Ceil(v));
    case UnaryKind::kRound:
      PLIMSOLL_MAP(hn::Round(v));
    case UnaryKind::kRelu:
      PLIMSOLL_MAP(v_max(zero, v));
    case UnaryKind::kLeakyRelu:
      PLIMSOLL_MAP(hn::IfThenElse(hn::Lt(v, zero), hn::Mul(v, a), v));
    case UnaryKind::kHardSigmoid:
      PLIMSOLL_MAP(v_min(one, v_max(zero, hn::MulAdd(a, v, b))));
    case UnaryKind::kClip:
      PLIMSOLL_MAP(v_min(b, v_max(a, v)));
    default: {  // kHardSwish
      // x + 3 is exact where x / 6 + 1/2 would cancel; a sixth of 6 rounds to 1.
      const V sixth = hn::Set(d, T{1} / 6), three = hn::Set(d, T{3}), six = hn::Set(d, T{6});
      PLIMSOLL_MAP(hn::Mul(v, hn::Mul(v_min(six, v_max(zero, hn::Add(v, three))), sixth)));
    }
  }
}

template <class T, class D = hn::ScalableTag<T>>
HWY_NOINLINE void map_trigonometric(const Unary& f, const T* x, T* y, size_t count) {
  const D d;
  switch (f.kind) {
    case UnaryKind::kSin:
      PLIMSOLL_MAP(v_sin(d, v));
    case UnaryKind::kCos:
      PLIMSOLL_MAP(v_cos(d, v));
    case UnaryKind::kTan:
      PLIMSOLL_MAP(v_tan(d, v));
    case UnaryKind::kAsin:
      PLIMSOLL_MAP(hn::Asin(d, v));
    case UnaryKind::kAcos:
      PLIMSOLL_MAP(hn::Acos(d, v));
    case UnaryKind::kAtan:
      PLIMSOLL_MAP(hn::Atan(d, v));
    case UnaryKind::kSinh:
      PLIMSOLL_MAP(v_sinh(d, v));
    case UnaryKind::kCosh:
      PLIMSOLL_MAP(v_cosh(d, v));
    case UnaryKind::kAsinh:
      PLIMSOLL_MAP(v_asinh(d, v));
    case UnaryKind::kAcosh:
      PLIMSOLL_MAP(v_acosh(d, v));
    default:  // kAtanh
      PLIMSOLL_MAP(v_atanh(d, v));
  }
}

template <class T, class D = hn::ScalableTag<T>>
HWY_NOINLINE void map_activation(const Unary& f, const T* x, T* y, size_t count) {
  using V = hn::Vec<D>;
  const D d;
  const V a = hn::Set(d, T{f.a});
  const V b = hn::Set(d, T{f.b});
  const V one = hn::Set(d, 1.0f);
  switch (f.kind) {
    case UnaryKind::kMish:
      PLIMSOLL_MAP(v_mish(d, v));
    case UnaryKind::kCelu:
      PLIMSOLL_MAP(v_celu(d, v, a));
    case UnaryKind::kSwish:
      PLIMSOLL_MAP(hn::Mul(v, v_sigmoid(d, hn::Mul(a, v))));
    case UnaryKind::kSoftsign:
      PLIMSOLL_MAP(hn::Div(v, hn::Add(one, hn::Abs(v))));
    case UnaryKind::kShrink:
      PLIMSOLL_MAP(v_shrink(d, v, a, b));
    default:  // kThresholdedRelu
      PLIMSOLL_MAP(hn::IfThenElseZero(hn::Gt(v, a), v));
  }
}

template <class T, class D = hn::ScalableTag<T>>
HWY_NOINLINE void map_any(const Unary& f, const T* x, T* y, int64_t elements) {
  using V = hn::Vec<D>;
  const D d;
  const V a = hn::Set(d, T{f.a});
  const V b = hn::Set(d, T{f.b});
  const auto count = static_cast<size_t>(elements);
  switch (f.kind) {
    case UnaryKind::kExp:
      PLIMSOLL_MAP(v_exp(d, v));
    case UnaryKind::kLog:
      PLIMSOLL_MAP(v_log(d, v));
    case UnaryKind::kErf:
      PLIMSOLL_MAP(v_erf(d, v));
    case UnaryKind::kTanh:
      PLIMSOLL_MAP(v_tanh(d, v));
    case UnaryKind::kSigmoid:
      PLIMSOLL_MAP(v_sigmoid(d, v));
    case UnaryKind::kSilu:
      PLIMSOLL_MAP(hn::Mul(v, v_sigmoid(d, v)));
    case UnaryKind::kSoftplus:
      PLIMSOLL_MAP(v_softplus(d, v));
    case UnaryKind::kGelu:
      PLIMSOLL_MAP(v_gelu(d, v));
    case UnaryKind::kGeluTanh:
      PLIMSOLL_MAP(v_gelu_tanh(d, v));
    case UnaryKind::kElu:
      PLIMSOLL_MAP(v_elu(d, v, a));
    case UnaryKind::kSelu:
      PLIMSOLL_MAP(hn::Mul(b, v_elu(d, v, a)));
    default:
      if (f.kind >= UnaryKind::kMish) return map_activation(f, x, y, count);
      if (f.kind >= UnaryKind::kSin) return map_trigonometric(f, x, y, count);
      return map_simple(f, x, y, count);
  }
}
#undef PLIMSOLL_MAP

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
