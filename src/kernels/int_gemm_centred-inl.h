// The forms of int_gemm for AVX2 alone: four products of bytes are added up in 16 bits. Where four of them
// might not fit, A has zeros, and what belongs there stands in a list. Once per target.
//
// CentredTiles multiply A less a centre, which is near its zero point, as signed bytes by unsigned ones of B;
// NaturalTiles unsigned bytes of A, whose zero point is near 0, by signed ones of B.
#if defined(PLIMSOLL_KERNELS_INT_GEMM_CENTRED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_INT_GEMM_CENTRED_INL_H_
#undef PLIMSOLL_KERNELS_INT_GEMM_CENTRED_INL_H_
#else
#define PLIMSOLL_KERNELS_INT_GEMM_CENTRED_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/int_gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

// Four neighbours in k of one row: elements 0 and 2, and 1 and 3, as pairs of 16-bit numbers.
struct Misfit {
  int32_t group, even, odd;
};

// What a block of rows has of them: row r those from starts[r] to starts[r + 1].
struct Misfits {
  int32_t* starts = nullptr;
  Misfit* list = nullptr;
};

#if HWY_TARGET == HWY_AVX2
// What elements of A, taken as unsigned, are less. Of those near an end of the range it is the number that
// four at that end just fit with: results of Relu and Softmax are zero more often than anything else.
HWY_INLINE int32_t centre_of(int32_t zero_point) {
  constexpr int32_t kReach = 31;  // 4 * 31 * 255 fits 16 bits
  return std::clamp(zero_point, kReach, 255 - kReach);
}

// An octet of k is two groups; its products are added up by the parity of their pair: elements 0, 1, 4 and 5,
// and 2, 3, 6 and 7. Less a centre they fit 16 bits if those above zero add up to 127 at most, and so those
// below, as 127 * 255 does; natural ones if the sum of their products with the largest elements of B does.
template <bool is_natural>
class RowCentring {
 public:
  // `flip` makes elements unsigned. `sizes`: of the rows of B, from 0 to -128.
  HWY_INLINE RowCentring(uint8_t flip, int32_t centre, const int8_t* sizes)
      : flip_(flip), centre_(static_cast<uint8_t>(centre)), sizes_(sizes) {}

  // Writes whole vectors, zeros behind k, and what does not fit to `misfits`; their end. May be done in
  // place. `sum`: of all elements less the centre.
  HWY_INLINE Misfit* row(const uint8_t* from, int64_t k, uint8_t* to, Misfit* misfits, uint32_t& sum) const {
    const __m256i flip = _mm256_set1_epi8(static_cast<char>(flip_)),
                  centre = _mm256_set1_epi8(static_cast<char>(centre_)), zero = _mm256_setzero_si256();
    __m256i all = zero;
    const auto vector = [&](const uint8_t* x, int64_t at) HWY_ATTR {
      const __m256i value = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)), flip);
      const uint32_t beyond = misfits_of(value, centre, at);
      all = _mm256_add_epi64(all, _mm256_sad_epu8(value, zero));
      HWY_ALIGN uint8_t bytes[32];
      if (HWY_UNLIKELY(beyond != 0)) _mm256_store_si256(reinterpret_cast<__m256i*>(bytes), value);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + at),
                          is_natural ? value : _mm256_sub_epi8(value, centre));
      if (HWY_UNLIKELY(beyond != 0)) misfits = take_out(bytes, beyond, at, to, misfits);
    };
    int64_t i = 0;
    for (; i + 32 <= k; i += 32) vector(from + i, i);
    if (i < k) {
      HWY_ALIGN uint8_t rest[32];
      std::memset(rest, centre_ ^ flip_, sizeof rest);
      std::memcpy(rest, from + i, static_cast<size_t>(k - i));
      vector(rest, i);
      i += 32;
    }
    const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    sum = static_cast<uint32_t>(_mm_cvtsi128_si64(two) + _mm_extract_epi64(two, 1) - i * centre_);
    return misfits;
  }

 private:
  // Eight bits for each octet of a vector, zeros if it fits.
  HWY_INLINE uint32_t misfits_of(__m256i value, __m256i centre, int64_t at) const {
    const auto fours = [](__m256i sizes, __m256i by) HWY_ATTR {
      const __m256i pairs = _mm256_maddubs_epi16(sizes, by);
      return _mm256_adds_epi16(pairs, _mm256_shuffle_epi32(pairs, 0xb1));
    };
    __m256i is_beyond;
    if constexpr (is_natural) {
      const auto* sizes = reinterpret_cast<const __m256i*>(sizes_ + at);
      is_beyond = _mm256_cmpeq_epi16(fours(value, _mm256_loadu_si256(sizes)), _mm256_set1_epi16(INT16_MIN));
    } else {
      const __m256i ones = _mm256_set1_epi8(1);
      const __m256i above = fours(_mm256_subs_epu8(value, centre), ones),
                    below = fours(_mm256_subs_epu8(centre, value), ones);
      is_beyond = _mm256_cmpgt_epi16(_mm256_max_epi16(above, below), _mm256_set1_epi16(kMost));
    }
    return static_cast<uint32_t>(_mm256_movemask_epi8(is_beyond));
  }

  // Of each octet of a vector that does not fit the group that reaches farther; or both.
  Misfit* take_out(const uint8_t* bytes, uint32_t beyond, int64_t at, uint8_t* to, Misfit* misfits) const {
    for (int64_t octet = 0; octet < 32; octet += 8, beyond >>= 8) {
      if ((beyond & 0xff) == 0) continue;
      const uint8_t* x = bytes + octet;
      const int first = reach(x, at + octet), second = reach(x + 4, at + octet + 4);
      if (first > second || first > kMost) misfits = take_group(x, at + octet, to, misfits);
      if (second >= first || second > kMost) misfits = take_group(x + 4, at + octet + 4, to, misfits);
    }
    return misfits;
  }

  Misfit* take_group(const uint8_t* x, int64_t at, uint8_t* to, Misfit* misfits) const {
    const auto pair = [&](int i) {
      const auto low = static_cast<uint16_t>(x[i] - centre_),
                 high = static_cast<uint16_t>(x[i + 2] - centre_);
      return static_cast<int32_t>(static_cast<uint32_t>(low) | static_cast<uint32_t>(high) << 16);
    };
    *misfits = {static_cast<int32_t>(at / 4), pair(0), pair(1)};
    std::memset(to + at, 0, 4);
    return misfits + 1;
  }

  static constexpr int kMost = is_natural ? INT16_MAX : 127;

  // The largest sum of two neighbours of a group on one side of the centre; or of their products.
  int reach(const uint8_t* x, int64_t at) const {
    int most = 0;
    for (int i = 0; i < 4; i += 2) {
      if constexpr (is_natural) {
        most = std::max(most, -(x[i] * sizes_[at + i] + x[i + 1] * sizes_[at + i + 1]));
      } else {
        const int a = x[i] - centre_, b = x[i + 1] - centre_;
        const int above = std::max(a, 0) + std::max(b, 0);
        most = std::max({most, above, above - a - b});
      }
    }
    return most;
  }

  const uint8_t flip_, centre_;
  const int8_t* const sizes_;
};

template <bool is_natural>
struct CentredTilesOf : TileOfAnyRows<CentredTilesOf<is_natural>> {
  static constexpr int64_t kGroup = 4, kRows = 6, kBlockRows = 84;
  static constexpr bool kIsCentred = true, kIsNatural = is_natural;
  static constexpr int32_t kRightLift = 128;  // what elements of B are stored plus
  using Left = uint8_t;
  using Right = uint8_t;

  static int64_t packed_groups(int64_t groups) { return (groups + 1) / 2 * 2; }
  // A block stays in the second cache.
  static int64_t block_rows(int64_t k) {
    return std::clamp((int64_t{256} << 10) / std::max<int64_t>(k, 1) / kRows * kRows, 5 * kRows, kBlockRows);
  }

  template <int64_t rows, int64_t vectors>
  static void tile(const void* left, int64_t a_stride, const void* right, int64_t groups,
                   const int32_t* first, int32_t* sums) {
    const auto* a = static_cast<const uint8_t*>(left);
    const auto* b = static_cast<const uint8_t*>(right);
    const auto load = [](const void* at)
                          HWY_ATTR { return _mm256_loadu_si256(static_cast<const __m256i*>(at)); };
    const auto spread = [](const uint8_t* at) HWY_ATTR {
      int32_t quad;
      std::memcpy(&quad, at, sizeof quad);
      return _mm256_set1_epi32(quad);
    };
    const auto products = [](__m256i x, __m256i y) HWY_ATTR {
      return is_natural ? _mm256_maddubs_epi16(x, y) : _mm256_maddubs_epi16(y, x);
    };
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sum0[rows], sum1[rows];
    HWY_UNROLL(8)
    for (int64_t r = 0; r < rows; ++r) {
      sum0[r] = load(first);
      if constexpr (vectors > 1) sum1[r] = load(first + kIntLanes);
    }
    for (int64_t g = 0; g < groups; g += 2, b += 2 * kGroup * kIntPanel, a += 2 * kGroup) {
      const __m256i b00 = load(b), b10 = load(b + kGroup * kIntPanel);
      const __m256i b01 = load(b + kGroup * kIntLanes), b11 = load(b + kGroup * (kIntPanel + kIntLanes));
      HWY_UNROLL(8)
      for (int64_t r = 0; r < rows; ++r) {
        const __m256i a0 = spread(a + r * a_stride), a1 = spread(a + r * a_stride + kGroup);
        const __m256i four0 = _mm256_add_epi16(products(a0, b00), products(a1, b10));
        sum0[r] = _mm256_add_epi32(sum0[r], _mm256_madd_epi16(four0, ones));
        if constexpr (vectors > 1) {
          const __m256i four1 = _mm256_add_epi16(products(a0, b01), products(a1, b11));
          sum1[r] = _mm256_add_epi32(sum1[r], _mm256_madd_epi16(four1, ones));
        }
      }
    }
    HWY_UNROLL(8)
    for (int64_t r = 0; r < rows; ++r) {
      auto* to = reinterpret_cast<__m256i*>(sums + r * kIntPanel);
      _mm256_storeu_si256(to, sum0[r]);
      if constexpr (vectors > 1) _mm256_storeu_si256(to + 1, sum1[r]);
    }
  }

  // Adds what was taken out of one row.
  static void add_misfits(const Misfit* from, const Misfit* end, const uint8_t* panel, int32_t* sums) {
    auto* to = reinterpret_cast<__m256i*>(sums);
    __m256i sum0 = _mm256_loadu_si256(to), sum1 = _mm256_loadu_si256(to + 1);
    const __m256i low = _mm256_set1_epi16(0xff);
    for (; from != end; ++from) {
      const auto* b = reinterpret_cast<const __m256i*>(panel + from->group * kGroup * kIntPanel);
      const __m256i even = _mm256_set1_epi32(from->even), odd = _mm256_set1_epi32(from->odd);
      const __m256i b0 = _mm256_loadu_si256(b), b1 = _mm256_loadu_si256(b + 1);
      const auto products = [&](__m256i bytes) HWY_ATTR {
        const __m256i first = is_natural ? _mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8)
                                         : _mm256_and_si256(bytes, low),
                      second = is_natural ? _mm256_srai_epi16(bytes, 8) : _mm256_srli_epi16(bytes, 8);
        return _mm256_add_epi32(_mm256_madd_epi16(first, even), _mm256_madd_epi16(second, odd));
      };
      sum0 = _mm256_add_epi32(sum0, products(b0));
      sum1 = _mm256_add_epi32(sum1, products(b1));
    }
    _mm256_storeu_si256(to, sum0);
    _mm256_storeu_si256(to + 1, sum1);
  }
};

using CentredTiles = CentredTilesOf<false>;
using NaturalTiles = CentredTilesOf<true>;

// A panel of CentredTiles as NaturalTiles have it.
HWY_INLINE void flip_panel(const uint8_t* from, int64_t bytes, uint8_t* to) {
  const __m256i bits = _mm256_set1_epi8(static_cast<char>(0x80));
  for (int64_t i = 0; i < bytes; i += 32) {
    const __m256i quads = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + i), _mm256_xor_si256(quads, bits));
  }
}

// And as WidePairTiles have it.
HWY_INLINE void widen_quads(const uint8_t* from, int64_t bytes, int16_t* to) {
  const __m256i bits = _mm256_set1_epi8(static_cast<char>(0x80));
  for (int64_t i = 0; i < bytes; i += 64, to += 64) {
    for (int64_t half = 0; half < 2; ++half) {
      const auto* at = reinterpret_cast<const __m256i*>(from + i + 32 * half);
      const __m256i quads = _mm256_xor_si256(_mm256_loadu_si256(at), bits);
      const __m256i low = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(quads)),
                    high = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(quads, 1));
      // The first pairs of the columns 0, 1, 4, 5, 2, 3, 6 and 7, then the second ones.
      const auto chosen = [&](auto which) HWY_ATTR {
        const __m256 both =
            _mm256_shuffle_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), decltype(which)::value);
        return _mm256_permute4x64_epi64(_mm256_castps_si256(both), 0xd8);
      };
      auto* out = reinterpret_cast<__m256i*>(to + 16 * half);
      _mm256_store_si256(out, chosen(std::integral_constant<int, 0x88>()));
      _mm256_store_si256(out + 2, chosen(std::integral_constant<int, 0xdd>()));
    }
  }
}

#endif

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
