// The right operand of int_gemm in the order in which its forms read it, once per target.
#if defined(PLIMSOLL_KERNELS_INT_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_INT_GEMM_PACK_INL_H_
#undef PLIMSOLL_KERNELS_INT_GEMM_PACK_INL_H_
#else
#define PLIMSOLL_KERNELS_INT_GEMM_PACK_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/int_gemm.h"
#include "kernels/int_gemm_forms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

// Packed: panel after panel, each [groups][kIntPanel][kGroup] of B as signed bytes, zeros behind k; then the
// sums of the columns; then, of forms that are centred, the sizes of the largest elements of the rows.
// Unsigned elements are less 128. All of them are stored plus what the form lifts them by, which sums do not
// know of.
template <typename Form>
HWY_INLINE int64_t group_count(int64_t k) {
  return (k + Form::kGroup - 1) / Form::kGroup;
}
template <typename Form>
HWY_INLINE int64_t panel_bytes(int64_t k) {
  return Form::packed_groups(group_count<Form>(k)) * Form::kGroup * kIntPanel;
}
HWY_INLINE int64_t int_panels(int64_t n) {
  return (n + kIntPanel - 1) / kIntPanel;
}

// Of the sizes of rows, in whole vectors.
HWY_INLINE int64_t size_bytes(int64_t k) {
  return (k + 31) / 32 * 32;
}

template <typename Form>
HWY_INLINE int64_t size_packed(int64_t k, int64_t n) {
  return int_panels(n) * (panel_bytes<Form>(k) + kIntPanel * int64_t{sizeof(int32_t)}) +
         (Form::kIsCentred ? size_bytes(k) : 0);
}

#if HWY_TARGET == HWY_AVX3
// A panel whose columns lie side by side: four rows at a time are put together. Returns how many of k are.
HWY_INLINE int64_t pack_quads(int64_t k, const uint8_t* from, int64_t row_stride, uint8_t flip, int8_t* to,
                              int32_t* sums) {
  int64_t i = 0;
  const __m256i bits = _mm256_set1_epi8(static_cast<char>(flip));
  const auto row = [&](int64_t at) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at * row_stride));
    return _mm256_xor_si256(bytes, bits);
  };
  const __m256i ones = _mm256_set1_epi8(1);
  const __m512i twos = _mm512_set1_epi16(1);
  __m512i sum0 = _mm512_loadu_si512(sums), sum1 = _mm512_loadu_si512(sums + kIntLanes);
  for (; i + 4 <= k; i += 4, to += 4 * kIntPanel) {
    const __m256i r0 = row(i), r1 = row(i + 1), r2 = row(i + 2), r3 = row(i + 3);
    const __m256i low01 = _mm256_unpacklo_epi8(r0, r1), high01 = _mm256_unpackhi_epi8(r0, r1),
                  low23 = _mm256_unpacklo_epi8(r2, r3), high23 = _mm256_unpackhi_epi8(r2, r3);
    // Columns 0 to 3 and 16 to 19, 4 to 7 and 20 to 23, ...
    const __m256i q0 = _mm256_unpacklo_epi16(low01, low23), q1 = _mm256_unpackhi_epi16(low01, low23),
                  q2 = _mm256_unpacklo_epi16(high01, high23), q3 = _mm256_unpackhi_epi16(high01, high23);
    const auto both = [](__m256i a, __m256i b) {
      return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
    };
    const __m512i first =
                      both(_mm256_permute2x128_si256(q0, q1, 0x20), _mm256_permute2x128_si256(q2, q3, 0x20)),
                  second =
                      both(_mm256_permute2x128_si256(q0, q1, 0x31), _mm256_permute2x128_si256(q2, q3, 0x31));
    _mm512_storeu_si512(to, first);
    _mm512_storeu_si512(to + 64, second);
    const __m512i one = both(ones, ones);
    sum0 = _mm512_add_epi32(sum0, _mm512_madd_epi16(_mm512_maddubs_epi16(one, first), twos));
    sum1 = _mm512_add_epi32(sum1, _mm512_madd_epi16(_mm512_maddubs_epi16(one, second), twos));
  }
  _mm512_storeu_si512(sums, sum0);
  _mm512_storeu_si512(sums + kIntLanes, sum1);
  return i;
}
#elif HWY_TARGET == HWY_AVX2
// The same; what is stored is plus `lift`.
HWY_INLINE int64_t pack_quads(int64_t k, const uint8_t* from, int64_t row_stride, uint8_t flip, int32_t lift,
                              int8_t* to, int32_t* sums) {
  int64_t i = 0;
  const __m128i bits = _mm_set1_epi8(static_cast<char>(flip));
  const __m256i ones = _mm256_set1_epi8(1), pairs = _mm256_set1_epi16(1),
                more = _mm256_set1_epi8(static_cast<char>(lift));
  const auto row = [&](int64_t at) HWY_ATTR {
    return _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at * row_stride)), bits);
  };
  auto* sum = reinterpret_cast<__m256i*>(sums);
  __m256i sum0 = _mm256_loadu_si256(sum), sum1 = _mm256_loadu_si256(sum + 1);
  for (; i + 4 <= k; i += 4, to += 4 * kIntPanel) {
    const __m128i r0 = row(i), r1 = row(i + 1), r2 = row(i + 2), r3 = row(i + 3);
    const __m128i low01 = _mm_unpacklo_epi8(r0, r1), high01 = _mm_unpackhi_epi8(r0, r1),
                  low23 = _mm_unpacklo_epi8(r2, r3), high23 = _mm_unpackhi_epi8(r2, r3);
    const __m256i first =
        _mm256_set_m128i(_mm_unpackhi_epi16(low01, low23), _mm_unpacklo_epi16(low01, low23));
    const __m256i second =
        _mm256_set_m128i(_mm_unpackhi_epi16(high01, high23), _mm_unpacklo_epi16(high01, high23));
    sum0 = _mm256_add_epi32(sum0, _mm256_madd_epi16(_mm256_maddubs_epi16(ones, first), pairs));
    sum1 = _mm256_add_epi32(sum1, _mm256_madd_epi16(_mm256_maddubs_epi16(ones, second), pairs));
    auto* at = reinterpret_cast<__m256i*>(to);
    _mm256_storeu_si256(at, _mm256_add_epi8(first, more));
    _mm256_storeu_si256(at + 1, _mm256_add_epi8(second, more));
  }
  _mm256_storeu_si256(sum, sum0);
  _mm256_storeu_si256(sum + 1, sum1);
  return i;
}
#endif

#if HWY_TARGET == HWY_AVX2
// The largest elements of the rows of B, without their signs, as numbers from 0 to -128.
inline void find_sizes(int64_t k, int64_t n, const int8_t* packed, int8_t* sizes) {
  std::memset(sizes, 0, static_cast<size_t>(size_bytes(k)));
  const __m256i bits = _mm256_set1_epi8(static_cast<char>(0x80));
  for (int64_t panel = 0; panel < int_panels(n); ++panel) {
    for (int64_t row = 0; row < k; row += 4, packed += 4 * kIntPanel) {
      const auto* at = reinterpret_cast<const __m256i*>(packed);
      const __m256i first = _mm256_abs_epi8(_mm256_xor_si256(_mm256_loadu_si256(at), bits)),
                    second = _mm256_abs_epi8(_mm256_xor_si256(_mm256_loadu_si256(at + 1), bits));
      const __m256i both = _mm256_max_epu8(first, second);
      __m128i most = _mm_max_epu8(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
      most = _mm_max_epu8(most, _mm_srli_si128(most, 8));
      most = _mm_max_epu8(most, _mm_srli_si128(most, 4));
      int32_t four;
      std::memcpy(&four, sizes + row, sizeof four);
      // Less than zero, so that 128 is there.
      most = _mm_min_epi8(_mm_sub_epi8(_mm_setzero_si128(), most), _mm_cvtsi32_si128(four));
      four = _mm_cvtsi128_si32(most);
      std::memcpy(sizes + row, &four, sizeof four);
    }
    packed += panel_bytes<CentredTiles>(k) - (k + 3) / 4 * 4 * kIntPanel;
  }
}
#endif

template <typename Form>
void pack_as(int64_t k, int64_t n, const IntGemmRight& b, int8_t* packed) {
  constexpr int64_t kGroup = Form::kGroup;
  const auto* from = static_cast<const uint8_t*>(b.data);
  const uint8_t flip = b.is_signed ? 0 : 0x80;
  auto* sums = reinterpret_cast<int32_t*>(packed + int_panels(n) * panel_bytes<Form>(k));
  std::memset(sums, 0, static_cast<size_t>(int_panels(n) * kIntPanel) * sizeof(int32_t));
  for (int64_t panel = 0; panel < int_panels(n); ++panel) {
    const int64_t col0 = panel * kIntPanel, cols = std::min(kIntPanel, n - col0);
    int8_t* to = packed + panel * panel_bytes<Form>(k);
    int64_t i = 0;
#if HWY_TARGET == HWY_AVX3
    if (kGroup == 4 && cols == kIntPanel && b.col_stride == 1 && b.block >= k)
      i = pack_quads(k, from + col0, b.row_stride, flip, to, sums + col0);
#elif HWY_TARGET == HWY_AVX2
    if (kGroup == 4 && cols == kIntPanel && b.col_stride == 1 && b.block >= k)
      i = pack_quads(k, from + col0, b.row_stride, flip, Form::kRightLift, to, sums + col0);
#endif
    std::memset(to + i * kIntPanel, Form::kRightLift,
                static_cast<size_t>(panel_bytes<Form>(k) - i * kIntPanel));
    for (; i < k; ++i) {
      int8_t* group = to + i / kGroup * kGroup * kIntPanel + i % kGroup;
      const uint8_t* row =
          from + i / b.block * b.block_stride + i % b.block * b.row_stride + col0 * b.col_stride;
      for (int64_t col = 0; col < cols; ++col) {
        const auto value = static_cast<int8_t>(row[col * b.col_stride] ^ flip);
        group[col * kGroup] = static_cast<int8_t>(value + Form::kRightLift);
        sums[col0 + col] += value;
      }
    }
  }
#if HWY_TARGET == HWY_AVX2
  if constexpr (Form::kIsCentred) find_sizes(k, n, packed, packed + size_packed<Form>(k, n) - size_bytes(k));
#endif
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
