#include "kernels/byte_table.h"

#include <algorithm>

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
#endif

void look_up(const uint8_t* x, const uint8_t* table, int64_t count, uint8_t* y) {
  int64_t i = 0;
#if HWY_TARGET == HWY_AVX3
  if (__builtin_cpu_supports("avx512vbmi")) i = look_up_vectors(x, table, count, y);
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
