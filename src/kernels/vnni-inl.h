// Four products of unsigned and signed bytes at a time, once per target: AVX-512 VNNI, or AVX-VNNI in vectors
// of 256 bits. Neither is a target of Highway's, so that functions name them (PLIMSOLL_VNNI) and whoever
// calls them asks has_vnni().
#if defined(PLIMSOLL_KERNELS_VNNI_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_VNNI_INL_H_
#undef PLIMSOLL_KERNELS_VNNI_INL_H_
#else
#define PLIMSOLL_KERNELS_VNNI_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/instructions.h"

#undef PLIMSOLL_VNNI
HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3
#define PLIMSOLL_VNNI [[gnu::target("avx512vnni")]]
using Quads = __m512i;
HWY_INLINE bool has_vnni() {
  return may_use(kAvx512Vnni);
}
HWY_INLINE Quads load_quads(const void* at) {
  return _mm512_loadu_si512(at);
}
HWY_INLINE void store_quads(Quads v, void* at) {
  _mm512_storeu_si512(at, v);
}
HWY_INLINE Quads same_quads(int32_t quad) {
  return _mm512_set1_epi32(quad);
}
// Left to itself GCC moves sums around.
PLIMSOLL_VNNI HWY_INLINE void add_quads(Quads& sum, Quads natural, Quads whole) {
#if HWY_COMPILER_GCC_ACTUAL
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(natural), "v"(whole));
#else
  sum = _mm512_dpbusd_epi32(sum, natural, whole);
#endif
}
#elif HWY_TARGET == HWY_AVX2
#define PLIMSOLL_VNNI [[gnu::target("avxvnni")]]
using Quads = __m256i;
HWY_INLINE bool has_vnni() {
  return may_use(kAvxVnni);
}
HWY_INLINE Quads load_quads(const void* at) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}
HWY_INLINE void store_quads(Quads v, void* at) {
  _mm256_storeu_si256(static_cast<__m256i*>(at), v);
}
HWY_INLINE Quads same_quads(int32_t quad) {
  return _mm256_set1_epi32(quad);
}
PLIMSOLL_VNNI HWY_INLINE void add_quads(Quads& sum, Quads natural, Quads whole) {
#if HWY_COMPILER_GCC_ACTUAL
  __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(natural), "x"(whole));
#else
  sum = _mm256_dpbusd_avx_epi32(sum, natural, whole);
#endif
}
#endif

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
