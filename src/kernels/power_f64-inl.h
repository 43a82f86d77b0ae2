// x^y on Highway vectors of double, once per target that has a fused multiply-add: the logarithm and its
// product with y are each the sum of two doubles. Within 0.9 units in the last place, and exact where the
// power is a whole number; measured against long double by tests/kernels/binary_test.cpp.
#if defined(PLIMSOLL_KERNELS_POWER_F64_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_POWER_F64_INL_H_
#undef PLIMSOLL_KERNELS_POWER_F64_INL_H_
#else
#define PLIMSOLL_KERNELS_POWER_F64_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "kernels/vector_math_f64-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_NATIVE_FMA
// The sum of both; `low` is less than a unit in the last place of `high`.
template <class V>
struct TwoPartF64 {
  V high, low;
};

// 2 / log(2) (1 + s^2 / 3 + s^4 / 5 + ...) for s in [-0.172, 0.172], the sum of both parts.
template <class D, class V = hn::Vec<D>>
HWY_INLINE TwoPartF64<V> log2_factor_f64(D d, TwoPartF64<V> s) {
  const V first = hn::Set(d, 2.8853900817779268), first_low = hn::Set(d, 4.0710547481862066e-17);
  const V second = hn::Set(d, 0.9617966939259756), second_low = hn::Set(d, 5.0577616648125907e-17);
  const V u = hn::Mul(s.high, s.high);
  const V u_low = hn::MulAdd(hn::Add(s.high, s.high), s.low, hn::MulSub(s.high, s.high, u));
  const V rest =
      polynomial(d, u, hn::Set(d, 0.11541560327111708), 0.12545174268599682, 0.1373995277037108,
                 0.15186263588304877, 0.16972882833987804, 0.19235933878519512, 0.22195308321368667,
                 0.2623081892525388, 0.3205988979753252, 0.4121985831111324, 0.5770780163555853);
  const V v = hn::Mul(u, second);
  V v_low = hn::MulAdd(u, second_low, hn::MulSub(u, second, v));
  v_low = hn::MulAdd(u_low, second, v_low);
  v_low = hn::MulAdd(hn::Mul(u, u), rest, v_low);
  const V sum = hn::Add(first, v);
  const V sum_low = hn::Add(hn::Add(hn::Sub(v, hn::Sub(sum, first)), first_low), v_low);
  const V high = hn::Add(sum, sum_low);
  return {high, hn::Sub(sum_low, hn::Sub(high, sum))};
}

// For finite x > 0: x = 2^e m with m in [sqrt(1/2), sqrt(2)), and the logarithm of m is the series of artanh
// in s = (m - 1) / (m + 1). Off by less than 2^-64 of itself.
template <class D, class V = hn::Vec<D>>
HWY_INLINE TwoPartF64<V> log2_f64(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  constexpr uint64_t kOne = 0x3ff0000000000000, kRootHalf = 0x3fe6a09e00000000;
  const V one = hn::Set(d, 1.0);
  const auto subnormal = hn::Lt(x, hn::Set(d, 0x1p-1022));
  const auto bits = hn::BitCast(du, hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, 0x1p54)), x));
  const auto shifted = hn::Add(bits, hn::Set(du, kOne - kRootHalf));
  // e + 1023 as the low bits of 2^52
  const auto exponent = hn::Or(hn::ShiftRight<52>(shifted), hn::Set(du, 0x4330000000000000));
  const V bias = hn::IfThenElse(subnormal, hn::Set(d, 0x1p52 + 1023 + 54), hn::Set(d, 0x1p52 + 1023));
  const V e = hn::Sub(hn::BitCast(d, exponent), bias);
  const V m =
      hn::BitCast(d, hn::Add(hn::And(shifted, hn::Set(du, 0x000fffffffffffff)), hn::Set(du, kRootHalf)));
  const V above = hn::Sub(m, one), below = hn::Add(m, one), below_low = hn::Sub(m, hn::Sub(below, one));
  const V reciprocal = hn::Div(one, below);
  TwoPartF64<V> s;
  s.high = hn::Mul(above, reciprocal);
  s.low = hn::NegMulAdd(s.high, below_low, hn::NegMulAdd(s.high, below, above));
  s.low = hn::Mul(s.low, reciprocal);
  const TwoPartF64<V> factor = log2_factor_f64(d, s);
  const V w = hn::Mul(s.high, factor.high);
  V w_low = hn::MulAdd(s.high, factor.low, hn::MulSub(s.high, factor.high, w));
  w_low = hn::MulAdd(s.low, factor.high, w_low);
  const V high = hn::Add(e, w);
  return {high, hn::Add(hn::Sub(w, hn::Sub(high, e)), w_low)};
}

// 2^t for t in [-1100, 1100], from 0 over the subnormals to infinity.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp2_f64(D d, TwoPartF64<V> t) {
  const V one = hn::Set(d, 1.0), log2 = hn::Set(d, 0.6931471805599453);
  const V n = hn::Round(t.high);
  const V whole = hn::Sub(t.high, n);
  const V r = hn::Add(whole, t.low);
  const V r_low = hn::Sub(t.low, hn::Sub(r, whole));
  const V p =
      polynomial(d, r, hn::Set(d, 1.3691488853904128e-12), 2.5678435993488206e-11, 4.4455382718708116e-10,
                 7.054911620801123e-09, 1.01780860092397e-07, 1.321548679014431e-06, 1.5252733804059841e-05,
                 0.0001540353039338161, 0.0013333558146428443, 0.009618129107628477, 0.05550410866482158,
                 0.24022650695910072);
  const V linear = hn::MulAdd(r, log2, one);
  V low = hn::MulAdd(r, log2, hn::Sub(one, linear));
  low = hn::MulAdd(r, hn::Set(d, 2.3190468138462996e-17), low);
  low = hn::MulAdd(r_low, log2, low);
  low = hn::MulAdd(hn::Mul(r, r), p, low);
  const V half = hn::Floor(hn::Mul(n, hn::Set(d, 0.5)));
  return hn::Mul(hn::Mul(hn::Add(linear, low), power_of_two_f64(d, half)),
                 power_of_two_f64(d, hn::Sub(n, half)));
}

// x^y for x >= 0
template <class D, class V = hn::Vec<D>>
HWY_INLINE V power_f64(D d, V x, V y) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const V limit = hn::Set(d, 1100.0);
  TwoPartF64<V> log = log2_f64(d, x);
  log.high = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Set(d, -kInfinity), log.high);
  log.high = hn::IfThenElse(hn::Lt(x, hn::Set(d, kInfinity)), log.high, x);  // NaN too
  const V t = hn::Mul(y, log.high);
  const V t_low = hn::MulAdd(y, log.low, hn::MulSub(y, log.high, t));
  const V result =
      exp2_f64(d, {v_clamp(d, t, -1100.0, 1100.0), hn::IfThenElseZero(hn::Lt(hn::Abs(t), limit), t_low)});
  return hn::IfThenElse(hn::Eq(t, t), result, t);
}
#else
template <class D, class V = hn::Vec<D>>
HWY_INLINE V power_f64(D d, V x, V y) {
  HWY_ALIGN double base[hn::MaxLanes(D())], exponent[hn::MaxLanes(D())];
  hn::Store(x, d, base);
  hn::Store(y, d, exponent);
  for (size_t i = 0; i < hn::Lanes(d); ++i) base[i] = std::pow(base[i], exponent[i]);
  return hn::Load(d, base);
}
#endif

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
