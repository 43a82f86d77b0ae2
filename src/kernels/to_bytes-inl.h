// From floats to bytes, once per target.
#if defined(PLIMSOLL_KERNELS_TO_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_TO_BYTES_INL_H_
#undef PLIMSOLL_KERNELS_TO_BYTES_INL_H_
#else
#define PLIMSOLL_KERNELS_TO_BYTES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using WideFloats = hn::Vec<hn::ScalableTag<float>>;
using WideInts = hn::Vec<hn::ScalableTag<int32_t>>;

// Half to even, of numbers within 32 bits: Highway's own looks after the others, with four more instructions.
HWY_INLINE WideInts nearest_within(WideFloats value) {
#if HWY_TARGET == HWY_AVX3
  return WideInts{_mm512_cvtps_epi32(value.raw)};
#elif HWY_TARGET == HWY_AVX2
  return WideInts{_mm256_cvtps_epi32(value.raw)};
#else
  return hn::NearestInt(value);
#endif
}

// The lowest byte of each.
HWY_INLINE void store_bytes(WideInts value, uint8_t* y) {
#if HWY_TARGET == HWY_AVX3
  _mm_storeu_si128(reinterpret_cast<__m128i*>(y), _mm512_cvtepi32_epi8(value.raw));
#else
  const hn::ScalableTag<uint32_t> d;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  hn::StoreU(hn::TruncateTo(d8, hn::BitCast(d, value)), d8, y);
#endif
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
