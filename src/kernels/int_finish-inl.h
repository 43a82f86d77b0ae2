// From the 32-bit sums of integer products to results, once per target: what int_gemm and int_depthwise end
// with.
#if defined(PLIMSOLL_KERNELS_INT_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_INT_FINISH_INL_H_
#undef PLIMSOLL_KERNELS_INT_FINISH_INL_H_
#else
#define PLIMSOLL_KERNELS_INT_FINISH_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/int_gemm.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

class IntFinisher {
  using D = hn::ScalableTag<int32_t>;
  using F = hn::RebindToFloat<D>;
  using V = hn::Vec<D>;
  using Bytes = hn::Rebind<uint8_t, D>;

 public:
  static constexpr int64_t kLanes = hn::MaxLanes(D());

  IntFinisher(IntGemmResult type, const IntGemmFinish& finish) : type_(type), z_(finish.addend) {
    const int32_t least = type == IntGemmResult::kInt8 ? -128 : 0;
    const bool adds = z_.data != nullptr;
    last_zero_ = adds ? z_.sum_zero_point : finish.zero_point;
    zero_ = finish.zero_point;
    low_ = static_cast<float>(least - zero_), high_ = low_ + 255;
    last_low_ = static_cast<float>(std::clamp(finish.least, least, least + 255) - last_zero_);
    last_high_ = static_cast<float>(std::clamp(finish.most, least, least + 255) - last_zero_);
    if (!adds) low_ = last_low_, high_ = last_high_;
  }

  // `count` results of one row; sums and scales can be read up to the next multiple of kLanes. `z`: the
  // addend of the first of them, if there is one.
  void row(const int32_t* sums, const float* scales, const float* float_bias, int64_t count, const uint8_t* z,
           void* to) const {
    switch (type_) {
      case IntGemmResult::kInt32:
        std::memcpy(to, sums, static_cast<size_t>(count) * sizeof(int32_t));
        return;
      case IntGemmResult::kFloat:
        return floats(sums, scales, float_bias, count, static_cast<float*>(to));
      default:
        break;
    }
    auto* y = static_cast<uint8_t*>(to);
    if (z_.data == nullptr) return bytes<false>(sums, scales, count, nullptr, y);
    bytes<true>(sums, scales, count, z, y);
  }

 private:
  static void floats(const int32_t* sums, const float* scales, const float* float_bias, int64_t count,
                     float* y) {
    const D d;
    const F f;
    HWY_ALIGN float rest[kLanes];
    for (int64_t i = 0; i < count; i += kLanes) {
      const auto value = hn::MulAdd(hn::ConvertTo(f, hn::LoadU(d, sums + i)), hn::LoadU(f, scales + i),
                                    hn::LoadU(f, float_bias + i));
      if (i + kLanes <= count) {
        hn::StoreU(value, f, y + i);
      } else {
        hn::Store(value, f, rest);
        std::memcpy(y + i, rest, static_cast<size_t>(count - i) * sizeof(float));
      }
    }
  }

  static HWY_INLINE void store(V value, uint8_t* y) {
#if HWY_TARGET == HWY_AVX3
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y), _mm512_cvtepi32_epi8(value.raw));
#else
    const hn::RebindToUnsigned<D> du;
    hn::StoreU(hn::TruncateTo(Bytes(), hn::BitCast(du, value)), Bytes(), y);
#endif
  }

  HWY_INLINE hn::Vec<F> addend(const uint8_t* z) const {
    const D d;
    const hn::Rebind<int8_t, D> ds;
    const V value = z_.is_signed ? hn::PromoteTo(d, hn::LoadU(ds, reinterpret_cast<const int8_t*>(z)))
                                 : hn::PromoteTo(d, hn::LoadU(Bytes(), z));
    return hn::ConvertTo(F(), hn::Sub(value, hn::Set(d, z_.zero_point)));
  }

  // Clamped before it is rounded: the same, and never outside 32 bits.
  template <bool adds>
  HWY_INLINE V whole(const int32_t* sums, const float* scales, const uint8_t* z) const {
    const D d;
    const F f;
    const auto value = hn::Mul(hn::ConvertTo(f, hn::LoadU(d, sums)), hn::LoadU(f, scales));
    const V rounded = hn::NearestInt(hn::Min(hn::Max(value, hn::Set(f, low_)), hn::Set(f, high_)));
    if constexpr (!adds) return hn::Add(rounded, hn::Set(d, last_zero_));
    const auto other = hn::Mul(addend(z), hn::Set(f, z_.scale));
    const auto sum = hn::MulAdd(hn::ConvertTo(f, rounded), hn::Set(f, z_.own_scale), other);
    return hn::Add(hn::NearestInt(hn::Min(hn::Max(sum, hn::Set(f, last_low_)), hn::Set(f, last_high_))),
                   hn::Set(d, last_zero_));
  }

  template <bool adds>
  void bytes(const int32_t* sums, const float* scales, int64_t count, const uint8_t* z, uint8_t* y) const {
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
      store(whole<adds>(sums + i, scales + i, z + (adds ? i : 0)), y + i);
    if (i == count) return;
    HWY_ALIGN uint8_t rest[kLanes] = {}, made[kLanes];
    if constexpr (adds) std::memcpy(rest, z + i, static_cast<size_t>(count - i));
    store(whole<adds>(sums + i, scales + i, rest), made);
    std::memcpy(y + i, made, static_cast<size_t>(count - i));
  }

  IntGemmResult type_;
  IntGemmAddend z_;
  int32_t zero_ = 0, last_zero_ = 0;
  float low_ = 0, high_ = 0, last_low_ = 0, last_high_ = 0;
};

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
