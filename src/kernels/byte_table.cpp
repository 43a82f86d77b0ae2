#include "kernels/byte_table.h"

#include <algorithm>

#include "base/processor.h"
#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/byte_table.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3
// Half of the table is in two registers, and the highest bit chooses between the halves.
[[gnu::target("avx512vbmi")]] int64_t look_up_vectors(const uint8_t* x, const uint8_t* table, int64_t count,
                                                      uint8_t* y) {
  const __m512i t0 = _mm512_loadu_si512(table), t1 = _mm512_loadu_si512(table + 64),
                t2 = _mm512_loadu_si512(table + 128), t3 = _mm512_loadu_si512(table + 192);
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    const __m512i at = _mm512_loadu_si512(x + i);
    const __m512i low = _mm512_permutex2var_epi8(t0, at, t1), high = _mm512_permutex2var_epi8(t2, at, t3);
    _mm512_storeu_si512(y + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high));
  }
  return i;
}
#elif HWY_TARGET == HWY_AVX2
// The lowest four bits choose from each sixteenth of the table, and one bit after the other between those.
int64_t look_up_vectors(const uint8_t* x, const uint8_t* table, int64_t count, uint8_t* y) {
  __m256i parts[16];
  for (int64_t i = 0; i < 16; ++i)
    parts[i] = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * i)));
  const __m256i low_bits = _mm256_set1_epi8(15);
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m256i at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    const __m256i low = _mm256_and_si256(at, low_bits);
    // The bits 4, 5, 6 and 7 as the highest of their bytes.
    const __m256i by[] = {_mm256_slli_epi16(at, 3), _mm256_slli_epi16(at, 2), _mm256_slli_epi16(at, 1), at};
    __m256i found[8];
#pragma GCC unroll 8
    for (int64_t k = 0; k < 8; ++k)
      found[k] = _mm256_blendv_epi8(_mm256_shuffle_epi8(parts[2 * k], low),
                                    _mm256_shuffle_epi8(parts[2 * k + 1], low), by[0]);
#pragma GCC unroll 4
    for (int64_t k = 0; k < 4; ++k) found[k] = _mm256_blendv_epi8(found[2 * k], found[2 * k + 1], by[1]);
    for (int64_t k = 0; k < 2; ++k) found[k] = _mm256_blendv_epi8(found[2 * k], found[2 * k + 1], by[2]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), _mm256_blendv_epi8(found[0], found[1], by[3]));
  }
  return i;
}
#endif

void look_up(const uint8_t* x, const uint8_t* table, int64_t count, uint8_t* y) {
  int64_t i = 0;
#if HWY_TARGET == HWY_AVX3
  if (processor().avx512_vbmi) i = look_up_vectors(x, table, count, y);
#elif HWY_TARGET == HWY_AVX2
  i = look_up_vectors(x, table, count, y);
#endif
  for (; i < count; ++i) y[i] = table[x[i]];
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
namespace {
HWY_EXPORT(look_up);
}  // namespace

void apply_byte_table(const uint8_t* x, const uint8_t* table, int64_t count, uint8_t* y, int threads) {
  constexpr int64_t kTask = 1 << 16;
  parallel_for(threads, (count + kTask - 1) / kTask, [&](int64_t task) {
    const int64_t at = task * kTask;
    HWY_DYNAMIC_DISPATCH(look_up)(x + at, table, std::min(kTask, count - at), y + at);
  });
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
