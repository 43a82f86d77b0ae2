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
#include "kernels/to_bytes-inl.h"

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
    z_term_ = static_cast<float>(-z_.zero_point) * z_.scale;
    is_whole_range_ = finish.least <= least && finish.most >= least + 255;
  }

  // What a tile of rows has besides its sums. Sums and scales can be read up to the next multiple of kLanes.
  struct Tile {
    const int32_t* sums;
    int64_t sums_stride, rows, count;  // results of a row
    const float *scales, *float_bias;
    bool has_small_scales;  // see has_small_scales(); false says nothing
    const uint8_t* z;       // the first addend, if there is one
    std::byte* y;
    int64_t y_stride;  // in bytes
  };

  void tile(const Tile& t) const {
    switch (type_) {
      case IntGemmResult::kInt32:
        for (int64_t r = 0; r < t.rows; ++r)
          std::memcpy(t.y + r * t.y_stride, t.sums + r * t.sums_stride,
                      static_cast<size_t>(t.count) * sizeof(int32_t));
        return;
      case IntGemmResult::kFloat:
        for (int64_t r = 0; r < t.rows; ++r)
          floats(t.sums + r * t.sums_stride, t.scales, t.float_bias, t.count,
                 reinterpret_cast<float*>(t.y + r * t.y_stride));
        return;
      default:
        return z_.data == nullptr ? bytes<false>(t) : bytes<true>(t);
    }
  }

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  // Four vectors of sums become one of 8-bit results, if there is no addend. Fours of results are the vectors
  // 0 to 3 of the first 128 bits, then of the next: bytes that were unpacked twice are in their order again.
  template <bool clamps>
  HWY_INLINE hn::Vec<hn::ScalableTag<uint8_t>> unpacked(const V (&sums)[4], const float* scales) const {
    const F f;
    const typename Packer::Vector zero = Packer::same(static_cast<int16_t>(last_zero_));
    const auto nearest_of = [&](int64_t i) HWY_ATTR {
      return nearest<false, clamps>(sums[i], hn::LoadU(f, scales + i * kLanes), nullptr);
    };
    const auto low = Packer::halve(nearest_of(0), nearest_of(1), zero);
    const auto high = Packer::halve(nearest_of(2), nearest_of(3), zero);
    return {Packer::whole(low, high, type_ == IntGemmResult::kInt8)};
  }
#endif

  // Whether results without an addend have to be kept within bounds by themselves: else what packs them does.
  bool clamps(bool has_small_scales) const {
    return !is_whole_range_ || !has_small_scales;
  }

  // Whether the bytes of rows of two vectors can be made of sums that are still in registers.
  bool takes_registers(bool has_small_scales) const {
    const bool is_bytes = type_ == IntGemmResult::kUint8 || type_ == IntGemmResult::kInt8;
    return is_bytes && z_.data == nullptr && !clamps(has_small_scales);
  }

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  // Rows of two vectors, if takes_registers().
  template <int64_t rows>
  HWY_INLINE void registers(const V* sum0, const V* sum1, const float* scales, uint8_t* y,
                            int64_t y_stride) const {
    const F f;
    const auto scale0 = hn::LoadU(f, scales), scale1 = hn::LoadU(f, scales + kLanes);
    const typename Packer::Vector zero = Packer::same(static_cast<int16_t>(last_zero_));
    const bool is_signed = type_ == IntGemmResult::kInt8;
    const auto row = [&](int64_t r) HWY_ATTR {
      return Packer::halve(nearest<false, false>(sum0[r], scale0, nullptr),
                           nearest<false, false>(sum1[r], scale1, nullptr), zero);
    };
    HWY_UNROLL(7)
    for (int64_t r = 0; r + 2 <= rows; r += 2)
      Packer::store(row(r), row(r + 1), is_signed, y + r * y_stride, y_stride);
    if constexpr (rows % 2 != 0) {
      const auto last = row(rows - 1);
      Packer::store(last, last, is_signed, y + (rows - 1) * y_stride, 0);
    }
  }
#endif

  // Whether no sum times such a scale is near the end of 32 bits.
  static bool has_small_scales(const float* scales, int64_t count) {
    const F f;
    auto most = hn::Zero(f);
    for (int64_t i = 0; i < count; i += kLanes) most = hn::Max(most, hn::Abs(hn::LoadU(f, scales + i)));
    return hn::AllTrue(f, hn::Lt(most, hn::Set(f, 0.5f)));
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

  // (z - its zero point) * its scale
  HWY_INLINE hn::Vec<F> addend(const uint8_t* z) const {
    const D d;
    const F f;
    const hn::Rebind<int8_t, D> ds;
    const V value = z_.is_signed ? hn::PromoteTo(d, hn::LoadU(ds, reinterpret_cast<const int8_t*>(z)))
                                 : hn::PromoteTo(d, hn::LoadU(Bytes(), z));
    return hn::MulAdd(hn::ConvertTo(f, value), hn::Set(f, z_.scale), hn::Set(f, z_term_));
  }

  // Clamped before it is rounded: the same, and never outside 32 bits. Without `clamps` of the result, what
  // packs the numbers saturates them.
  template <bool adds, bool clamps>
  HWY_INLINE V whole(V sums, hn::Vec<F> scales, const uint8_t* z) const {
    return hn::Add(nearest<adds, clamps>(sums, scales, z), hn::Set(D(), last_zero_));
  }

  // Without the zero point.
  template <bool adds, bool clamps>
  HWY_INLINE V nearest(V sums, hn::Vec<F> scales, const uint8_t* z) const {
    const F f;
    auto value = hn::Mul(hn::ConvertTo(f, sums), scales);
    if constexpr (clamps || adds) value = hn::Min(hn::Max(value, hn::Set(f, low_)), hn::Set(f, high_));
    if constexpr (adds) {
      value = hn::MulAdd(hn::Round(value), hn::Set(f, z_.own_scale), addend(z));
      if constexpr (clamps) value = hn::Min(hn::Max(value, hn::Set(f, last_low_)), hn::Set(f, last_high_));
    }
    return nearest_within(value);
  }

  template <bool adds>
  HWY_INLINE void bytes_of_row(const Tile& t, int64_t r) const {
    const int32_t* sums = t.sums + r * t.sums_stride;
    auto* y = reinterpret_cast<uint8_t*>(t.y + r * t.y_stride);
    const uint8_t* z = adds ? t.z + r * z_.row_stride : nullptr;
    for (int64_t i = 0; i < t.count; i += kLanes) {
      const auto number = hn::LoadU(D(), sums + i);
      const auto scales = hn::LoadU(F(), t.scales + i);
      if (i + kLanes <= t.count) {
        store_bytes(whole<adds, true>(number, scales, adds ? z + i : nullptr), y + i);
        continue;
      }
      HWY_ALIGN uint8_t some[kLanes] = {}, made[kLanes];
      const auto rest = static_cast<size_t>(t.count - i);
      if constexpr (adds) std::memcpy(some, z + i, rest);
      store_bytes(whole<adds, true>(number, scales, some), made);
      std::memcpy(y + i, made, rest);
    }
  }

  template <bool adds>
  void bytes(const Tile& t) const {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    const bool is_small = adds ? z_.scale < 1e6f && z_.own_scale < 1e6f : t.has_small_scales;
    const bool clamps = !is_whole_range_ || !is_small;
    if (t.count == 2 * kLanes) return clamps ? pairs_of_rows<adds, true>(t) : pairs_of_rows<adds, false>(t);
#if HWY_TARGET == HWY_AVX3
    if (t.count < 2 * kLanes) return clamps ? parts_of_rows<adds, true>(t) : parts_of_rows<adds, false>(t);
#endif
#endif
    for (int64_t r = 0; r < t.rows; ++r) bytes_of_row<adds>(t, r);
  }

#if HWY_TARGET == HWY_AVX3
  // Four vectors of 32-bit numbers as they are packed: by blocks of 128 bits, so that fours of bytes of the
  // vectors 0 to 3 follow each other. The second half of the result is the second row.
  struct Packer {
    using Vector = __m512i;
    static HWY_INLINE Vector same(int16_t value) { return _mm512_set1_epi16(value); }
    static HWY_INLINE Vector halve(V a, V b, Vector zero) {
      return _mm512_adds_epi16(_mm512_packs_epi32(a.raw, b.raw), zero);
    }
    static HWY_INLINE Vector whole(Vector a, Vector b, bool is_signed) {
      return is_signed ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
    }
    // The bytes of one vector after the other.
    static HWY_INLINE Vector in_order(Vector a, Vector b, bool is_signed) {
      const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
      return _mm512_permutexvar_epi32(order, whole(a, b, is_signed));
    }
    static HWY_INLINE void store(Vector a, Vector b, bool is_signed, uint8_t* y, int64_t y_stride) {
      const __m512i rows = in_order(a, b, is_signed);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), _mm512_castsi512_si256(rows));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + y_stride), _mm512_extracti64x4_epi64(rows, 1));
    }
  };
#elif HWY_TARGET == HWY_AVX2
  struct Packer {
    using Vector = __m256i;
    static HWY_INLINE Vector same(int16_t value) { return _mm256_set1_epi16(value); }
    static HWY_INLINE Vector halve(V a, V b, Vector zero) {
      return _mm256_adds_epi16(_mm256_packs_epi32(a.raw, b.raw), zero);
    }
    static HWY_INLINE Vector whole(Vector a, Vector b, bool is_signed) {
      return is_signed ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
    }
    static HWY_INLINE void store(Vector a, Vector b, bool is_signed, uint8_t* y, int64_t y_stride) {
      const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
      const __m256i rows = _mm256_permutevar8x32_epi32(whole(a, b, is_signed), order);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y), _mm256_castsi256_si128(rows));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y + y_stride), _mm256_extracti128_si256(rows, 1));
    }
  };
#endif

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
#if HWY_TARGET == HWY_AVX3
  // The first bytes; masks take longer than whole stores.
  static HWY_INLINE void store_part(__m128i bytes, __mmask16 mask, uint8_t* y) {
    if (mask == 0xFFFF) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y), bytes);
    } else if (mask == 0xFF) {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(y), bytes);
    } else {
      _mm_mask_storeu_epi8(y, mask, bytes);
    }
  }

  // Rows of less than two vectors: four of up to one, or two of more, become one vector of bytes.
  template <bool adds, bool clamps>
  void parts_of_rows(const Tile& t) const {
    const D d;
    const F f;
    const IntFinisher self = *this;
    const auto mask_of = [](int64_t count) HWY_ATTR {
      return static_cast<__mmask16>((uint32_t{1} << std::clamp<int64_t>(count, 0, kLanes)) - 1);
    };
    const __mmask16 mask0 = mask_of(t.count), mask1 = mask_of(t.count - kLanes);
    const auto scale0 = hn::LoadU(f, t.scales),
               scale1 = hn::LoadU(f, t.scales + (t.count > kLanes ? kLanes : 0));
    const Packer::Vector zero = Packer::same(static_cast<int16_t>(last_zero_));
    const bool is_signed = type_ == IntGemmResult::kInt8;
    const int64_t together = t.count > kLanes ? 2 : 4;
    // Where there are fewer rows left, the last one stands for those that are missing.
    const auto vector = [&](int64_t row, int64_t at, hn::Vec<F> scale, __mmask16 mask) HWY_ATTR {
      const int64_t r = std::min(row, t.rows - 1);
      HWY_ALIGN uint8_t some[16];
      if constexpr (adds)
        _mm_store_si128(reinterpret_cast<__m128i*>(some),
                        _mm_maskz_loadu_epi8(mask, t.z + r * self.z_.row_stride + at));
      return self.nearest<adds, clamps>(hn::LoadU(d, t.sums + r * t.sums_stride + at), scale, some);
    };
    for (int64_t r = 0; r < t.rows; r += together) {
      auto* y = reinterpret_cast<uint8_t*>(t.y + r * t.y_stride);
      const int64_t there = std::min(together, t.rows - r);
      if (together == 4) {
        const auto low = Packer::halve(vector(r, 0, scale0, mask0), vector(r + 1, 0, scale0, mask0), zero);
        const auto high =
            Packer::halve(vector(r + 2, 0, scale0, mask0), vector(r + 3, 0, scale0, mask0), zero);
        const __m512i rows = Packer::in_order(low, high, is_signed);
        const __m128i all[] = {_mm512_castsi512_si128(rows), _mm512_extracti32x4_epi32(rows, 1),
                               _mm512_extracti32x4_epi32(rows, 2), _mm512_extracti32x4_epi32(rows, 3)};
        for (int64_t i = 0; i < there; ++i) store_part(all[i], mask0, y + i * t.y_stride);
      } else {
        const auto low = Packer::halve(vector(r, 0, scale0, mask0), vector(r, kLanes, scale1, mask1), zero);
        const auto high =
            Packer::halve(vector(r + 1, 0, scale0, mask0), vector(r + 1, kLanes, scale1, mask1), zero);
        const __m512i rows = Packer::in_order(low, high, is_signed);
        const __m256i row0 = _mm512_castsi512_si256(rows), row1 = _mm512_extracti64x4_epi64(rows, 1);
        store_part(_mm256_castsi256_si128(row0), mask0, y);
        store_part(_mm256_extracti128_si256(row0, 1), mask1, y + kLanes);
        if (there == 1) continue;
        store_part(_mm256_castsi256_si128(row1), mask0, y + t.y_stride);
        store_part(_mm256_extracti128_si256(row1, 1), mask1, y + t.y_stride + kLanes);
      }
    }
  }
#endif

  // Two rows of two vectors become one vector of bytes.
  template <bool adds, bool clamps>
  void pairs_of_rows(const Tile& t) const {
    const D d;
    const F f;
    const IntFinisher self = *this;
    const auto scale0 = hn::LoadU(f, t.scales), scale1 = hn::LoadU(f, t.scales + kLanes);
    const typename Packer::Vector zero = Packer::same(static_cast<int16_t>(last_zero_));
    const int32_t* sums = t.sums;
    auto* y = reinterpret_cast<uint8_t*>(t.y);
    const uint8_t* z = t.z;
    int64_t r = 0;
    const auto next_row = [&]() HWY_ATTR {
      const V first = self.nearest<adds, clamps>(hn::LoadU(d, sums), scale0, z);
      const V second = self.nearest<adds, clamps>(hn::LoadU(d, sums + kLanes), scale1, adds ? z + kLanes : z);
      sums += t.sums_stride;
      if constexpr (adds) z += self.z_.row_stride;
      return Packer::halve(first, second, zero);
    };
    const bool is_signed = type_ == IntGemmResult::kInt8;
    const int64_t y_stride = t.y_stride;
    for (; r + 2 <= t.rows; r += 2) {
      const auto made0 = next_row(), made1 = next_row();
      Packer::store(made0, made1, is_signed, y, y_stride);
      y += 2 * y_stride;
    }
    if (r == t.rows) return;
    const auto last = next_row();
    Packer::store(last, last, is_signed, y, 0);
  }
#endif

  IntGemmResult type_;
  IntGemmAddend z_;
  int32_t zero_ = 0, last_zero_ = 0;
  bool is_whole_range_ = true;  // of its type
  float z_term_ = 0;
  float low_ = 0, high_ = 0, last_low_ = 0, last_high_ = 0;
};

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
