#include "kernels/unary_vectors_f64.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/unary_vectors_f64.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {

using D64 = hn::ScalableTag<double>;
using V64 = hn::Vec<D64>;

template <class F>
HWY_INLINE bool map_f64(const double* x, double* y, size_t count, F f) {
  const D64 d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(f(hn::LoadU(d, x + i)), d, y + i);
  if (i < count) store_tail(d, f(load_tail(d, x + i, count - i)), y + i, count - i);
  return true;
}

#define PLIMSOLL_MAP(expression) return map_f64(x, y, count, [=](V64 v) HWY_ATTR { return expression; })

HWY_NOINLINE bool map_simple_f64(const Unary& f, const double* x, double* y, size_t count) {
  const D64 d;
  const V64 a = hn::Set(d, double{f.a}), b = hn::Set(d, double{f.b});
  const V64 zero = hn::Zero(d), one = hn::Set(d, 1.0);
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
      PLIMSOLL_MAP(hn::Max(zero, v));
    case UnaryKind::kLeakyRelu:
      PLIMSOLL_MAP(hn::IfThenElse(hn::Lt(v, zero), hn::Mul(v, a), v));
    case UnaryKind::kHardSigmoid:
      PLIMSOLL_MAP(hn::Min(one, hn::Max(zero, hn::MulAdd(a, v, b))));
    case UnaryKind::kClip:
      PLIMSOLL_MAP(hn::Min(b, hn::Max(a, v)));
    case UnaryKind::kHardSwish: {
      const V64 sixth = hn::Set(d, 1.0 / 6), three = hn::Set(d, 3.0), six = hn::Set(d, 6.0);
      PLIMSOLL_MAP(hn::Mul(v, hn::Mul(hn::Min(six, hn::Max(zero, hn::Add(v, three))), sixth)));
    }
    default:
      return false;
  }
}

HWY_NOINLINE bool map_any_f64(const Unary& f, const double* x, double* y, int64_t elements) {
  const D64 d;
  const V64 a = hn::Set(d, double{f.a}), b = hn::Set(d, double{f.b});
  const auto count = static_cast<size_t>(elements);
  switch (f.kind) {
    case UnaryKind::kExp:
      PLIMSOLL_MAP(v_exp(d, v));
    case UnaryKind::kErf:
      PLIMSOLL_MAP(v_erf(d, v));
    case UnaryKind::kLog:
      PLIMSOLL_MAP(v_log(d, v));
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
      return map_simple_f64(f, x, y, count);
  }
}
#undef PLIMSOLL_MAP

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(map_any_f64);

bool map_vectors_f64(const Unary& f, const double* x, double* y, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(map_any_f64)(f, x, y, count);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
