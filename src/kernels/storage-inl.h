// How elements are kept in memory and computed in registers, once per target: float and double as they are,
// the 16-bit types widened to float when loaded and rounded, once and to the nearest even, when stored.
// Internal linkage: include freely.
#if defined(PLIMSOLL_KERNELS_STORAGE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_STORAGE_INL_H_
#undef PLIMSOLL_KERNELS_STORAGE_INL_H_
#else
#define PLIMSOLL_KERNELS_STORAGE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <type_traits>

#include "kernels/storage.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// ---- 16 bits to 32 and back ---------------------------------------------------------------------------

#if HWY_TARGET > HWY_AVX2
// A half's exponent and fraction, moved to where a float has them, are the number times 2^-112.
template <class D, class U>
HWY_INLINE hn::Vec<D> widen_half_bits(D d, U bits) {
  const hn::RebindToUnsigned<D> du;
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000)));
  const auto shifted = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7fff)));
  const auto finite = hn::BitCast(du, hn::Mul(hn::BitCast(d, shifted), hn::Set(d, 0x1p112f)));
  const auto special = hn::Gt(shifted, hn::Set(du, 0x0f7fffff));
  return hn::BitCast(d,
                     hn::Or(sign, hn::IfThenElse(special, hn::Or(shifted, hn::Set(du, 0x7f800000)), finite)));
}

template <class D>
HWY_INLINE auto narrow_half_bits(D d, hn::Vec<D> value) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, value);
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffff));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
  const auto normal = hn::ShiftRight<13>(
      hn::Sub(hn::Add(magnitude, hn::Add(odd, hn::Set(du, 0xfff))), hn::Set(du, 0x38000000)));
  const auto is_small = hn::Lt(magnitude, hn::Set(du, 0x38800000));
  // Adding 1/2 leaves the fraction of a subnormal half, rounded, in the lowest bits.
  const auto shifted =
      hn::BitCast(du, hn::Add(hn::BitCast(d, hn::IfThenElseZero(is_small, magnitude)), hn::Set(d, 0.5f)));
  auto result = hn::IfThenElse(is_small, hn::Sub(shifted, hn::Set(du, 0x3f000000)), normal);
  result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x477fefff)), hn::Set(du, 0x7c00), result);
  result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7f800000)), hn::Set(du, 0x7e00), result);
  return hn::Or(result, hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000)));
}
#endif

// `bits` are as many 16-bit lanes as D has floats.
template <class D, class V16>
HWY_INLINE hn::Vec<D> widened(D d, V16 bits, Float16) {
#if HWY_TARGET <= HWY_AVX2
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
#else
  return widen_half_bits(d, hn::PromoteTo(hn::RebindToUnsigned<D>(), bits));
#endif
}
template <class D, class V16>
HWY_INLINE hn::Vec<D> widened(D d, V16 bits, BFloat16) {
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<D>(), bits)));
}

template <class D>
HWY_INLINE auto narrowed(D d, hn::Vec<D> v, Float16) {
  const hn::Rebind<uint16_t, D> d16;
#if HWY_TARGET <= HWY_AVX2
  (void)d;
  return hn::BitCast(d16, hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), v));
#else
  return hn::DemoteTo(d16, hn::BitCast(hn::RebindToSigned<D>(), narrow_half_bits(d, v)));
#endif
}
template <class D>
HWY_INLINE auto narrowed(D, hn::Vec<D> v, BFloat16) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint16_t, D> d16;
  const auto bits = hn::BitCast(du, v);
  const auto high = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(high, hn::Set(du, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff))));
  const auto result =
      hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), hn::Or(high, hn::Set(du, 0x40)), rounded);
  return hn::DemoteTo(d16, hn::BitCast(hn::RebindToSigned<D>(), result));
}

template <class T>
HWY_INLINE const uint16_t* bits_of(const T* p) {
  return reinterpret_cast<const uint16_t*>(p);
}
template <class T>
HWY_INLINE uint16_t* bits_of(T* p) {
  return reinterpret_cast<uint16_t*>(p);
}

// ---- whole vectors --------------------------------------------------------------------------------------

// D's lanes are LaneOf<T>; any alignment.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_all(D d, const T* p) {
  static_assert(std::is_same_v<hn::TFromD<D>, LaneOf<T>>);
  if constexpr (kIsHalf<T>) {
    return widened(d, hn::LoadU(hn::Rebind<uint16_t, D>(), bits_of(p)), T());
  } else {
    return hn::LoadU(d, p);
  }
}
// Aligned to a vector of D, or to what such a vector takes in memory.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_aligned(D d, const T* p) {
  if constexpr (kIsHalf<T>) {
    return load_all(d, p);
  } else {
    return hn::Load(d, p);
  }
}
template <class D, class T>
HWY_INLINE void store_all(D d, hn::Vec<D> v, T* p) {
  static_assert(std::is_same_v<hn::TFromD<D>, LaneOf<T>>);
  if constexpr (kIsHalf<T>) {
    hn::StoreU(narrowed(d, v, T()), hn::Rebind<uint16_t, D>(), bits_of(p));
  } else {
    hn::StoreU(v, d, p);
  }
}

// ---- the first `count` elements, fewer than lanes
// -----------------------------------------------------------

// The other lanes are zero; memory behind is never touched. SSE4 has no masked accesses, nor has AVX2 for 16
// bits: they go through the stack.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_first(D d, const T* p, size_t count) {
  if constexpr (kIsHalf<T>) {
    const hn::Rebind<uint16_t, D> d16;
#if HWY_TARGET <= HWY_AVX3
    return widened(d, hn::MaskedLoad(hn::FirstN(d16, count), d16, bits_of(p)), T());
#else
    HWY_ALIGN uint16_t lanes[hn::MaxLanes(d16)] = {};
    for (size_t i = 0; i < count; ++i) lanes[i] = bits_of(p)[i];
    return widened(d, hn::Load(d16, lanes), T());
#endif
  } else {
#if HWY_TARGET <= HWY_AVX2
    return hn::MaskedLoad(hn::FirstN(d, count), d, p);
#else
    HWY_ALIGN T lanes[hn::MaxLanes(d)] = {};
    for (size_t i = 0; i < count; ++i) lanes[i] = p[i];
    return hn::Load(d, lanes);
#endif
  }
}

template <class D, class T>
HWY_INLINE void store_first(D d, hn::Vec<D> v, T* p, size_t count) {
  if constexpr (kIsHalf<T>) {
    const hn::Rebind<uint16_t, D> d16;
#if HWY_TARGET <= HWY_AVX3
    hn::BlendedStore(narrowed(d, v, T()), hn::FirstN(d16, count), d16, bits_of(p));
#else
    HWY_ALIGN uint16_t lanes[hn::MaxLanes(d16)];
    hn::Store(narrowed(d, v, T()), d16, lanes);
    for (size_t i = 0; i < count; ++i) bits_of(p)[i] = lanes[i];
#endif
  } else {
#if HWY_TARGET <= HWY_AVX2
    hn::BlendedStore(v, hn::FirstN(d, count), d, p);
#else
    HWY_ALIGN T lanes[hn::MaxLanes(d)];
    hn::Store(v, d, lanes);
    for (size_t i = 0; i < count; ++i) p[i] = lanes[i];
#endif
  }
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
