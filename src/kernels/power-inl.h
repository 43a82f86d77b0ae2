// x^y on Highway vectors of float and double, once per target: of floats through logarithm and exponential in
// double, which is right to the last place almost everywhere. Special cases as C has them.
#if defined(PLIMSOLL_KERNELS_POWER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_POWER_INL_H_
#undef PLIMSOLL_KERNELS_POWER_INL_H_
#else
#define PLIMSOLL_KERNELS_POWER_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

#include "kernels/min_max-inl.h"
#include "kernels/power_f64-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// log2(x) for finite x > 0: x = 2^e m with m in [sqrt(1/2), sqrt(2)), then the series of artanh in
// (m - 1) / (m + 1). Within 1e-10 of the result.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V double_log2(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  constexpr uint64_t kOne = 0x3ff0000000000000, kRootHalf = 0x3fe6a09e00000000;
  const auto shifted = hn::Add(hn::BitCast(du, x), hn::Set(du, kOne - kRootHalf));
  // e + 1023 as the low bits of 2^52
  const auto exponent = hn::Or(hn::ShiftRight<52>(shifted), hn::Set(du, 0x4330000000000000));
  const V e = hn::Sub(hn::BitCast(d, exponent), hn::Set(d, 0x1p52 + 1023));
  const V m =
      hn::BitCast(d, hn::Add(hn::And(shifted, hn::Set(du, 0x000fffffffffffff)), hn::Set(du, kRootHalf)));
  const V one = hn::Set(d, 1.0);
  const V s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const V p = polynomial(d, hn::Mul(s, s), hn::Set(d, 1.0 / 11), 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0);
  return hn::MulAdd(hn::Mul(s, hn::Set(d, 2 * 1.4426950408889634074)), p, e);
}

// 2^t for t in [-1000, 1000]; within 1e-10 of itself.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V double_exp2(D d, V t) {
  const hn::RebindToUnsigned<D> du;
  const V magic = hn::Set(d, 0x1.8p52);  // its last bits count ones
  const V rounded = hn::Add(t, magic);
  const V r = hn::Mul(hn::Sub(t, hn::Sub(rounded, magic)), hn::Set(d, 0.69314718055994530942));
  const V p = polynomial(d, r, hn::Set(d, 1.0 / 40320), 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6,
                         0.5, 1.0, 1.0);
  return hn::BitCast(d, hn::Add(hn::BitCast(du, p), hn::ShiftLeft<52>(hn::BitCast(du, rounded))));
}

// x^y for x >= 0 in double, as far as float needs it: beyond float's range it is 0 or infinity after
// rounding.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V double_power(D d, V x, V y) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  V log = double_log2(d, x);
  log = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Set(d, -kInfinity), log);
  log = hn::IfThenElse(hn::Lt(x, hn::Set(d, kInfinity)), log, x);  // NaN too
  const V t = hn::Mul(y, log);
  const V result = double_exp2(d, v_min(hn::Set(d, 200.0), v_max(hn::Set(d, -200.0), t)));
  return hn::IfThenElse(hn::Eq(t, t), result, t);
}

// |x|^y
template <class D, class V = hn::Vec<D>>
HWY_INLINE V power_of_magnitude(D d, V x, V y) {
  const V magnitude = hn::Abs(x);
  if constexpr (kIsDouble<D>) {
    return power_f64(d, magnitude, y);
  } else {
    const hn::Repartition<double, D> dd;
    const hn::Half<D> dh;
    const auto low = double_power(dd, hn::PromoteTo(dd, hn::LowerHalf(dh, magnitude)),
                                  hn::PromoteTo(dd, hn::LowerHalf(dh, y)));
    const auto high = double_power(dd, hn::PromoteTo(dd, hn::UpperHalf(dh, magnitude)),
                                   hn::PromoteTo(dd, hn::UpperHalf(dh, y)));
    return hn::Combine(d, hn::DemoteTo(dh, high), hn::DemoteTo(dh, low));
  }
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V v_pow(D d, V x, V y) {
  using Number = std::numeric_limits<hn::TFromD<D>>;
  const V one = hn::Set(d, 1), half = hn::Set(d, 0.5f), zero = hn::Zero(d);
  V power = power_of_magnitude(d, x, y);
  // A negative base: whole exponents only, odd ones keep the sign. Infinity is whole and even.
  const auto whole = hn::Eq(hn::Round(y), y);
  const V y_half = hn::Mul(y, half);
  const auto odd = hn::AndNot(hn::Eq(hn::Round(y_half), y_half), whole);
  const V sign = hn::And(x, hn::SignBit(d));
  power = hn::IfThenElse(odd, hn::Xor(power, sign), power);
  const auto undefined =
      hn::AndNot(whole, hn::And(hn::Lt(x, zero), hn::Gt(x, hn::Set(d, -Number::infinity()))));
  power = hn::IfThenElse(undefined, hn::Set(d, Number::quiet_NaN()), power);
  // 1^y and x^0 are 1, whatever the other is, and so is (-1)^infinity.
  const auto infinite = hn::Eq(hn::Abs(y), hn::Set(d, Number::infinity()));
  const auto is_one =
      hn::Or(hn::Or(hn::Eq(x, one), hn::Eq(y, zero)), hn::And(hn::Eq(hn::Abs(x), one), infinite));
  return hn::IfThenElse(is_one, one, power);
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
