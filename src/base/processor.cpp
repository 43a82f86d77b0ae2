#include "base/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/platform/x86.h>
#endif

namespace plimsoll {
namespace {

#if defined(__x86_64__)
struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

// As C's library asked when it was started.
Registers answer(unsigned leaf) {
  const unsigned(&found)[4] = __x86_get_cpuid_feature_leaf(leaf)->cpuid_array;
  return {found[0], found[1], found[2], found[3]};
}

constexpr unsigned bit(unsigned number) {
  return 1u << number;
}

bool has_all(unsigned found, unsigned wanted) {
  return (found & wanted) == wanted;
}

__attribute__((target("xsave"))) unsigned saved_registers() {
  return static_cast<unsigned>(_xgetbv(0));
}

Processor ask_processor() {
  Processor has;
  const Registers old = answer(CPUID_INDEX_1);
  has.ssse3 = has_all(old.c, bit_SSSE3);
  has.sse4 = has.ssse3 && has_all(old.c, bit_SSE4_1 | bit_SSE4_2 | bit_PCLMUL | bit_AES);
  if (!has.sse4 || !has_all(old.c, bit_OSXSAVE)) return has;
  constexpr unsigned kVectors = bit(1) | bit(2), kVectors512 = kVectors | bit(5) | bit(6) | bit(7);
  const unsigned saved = saved_registers();
  if (!has_all(saved, kVectors)) return has;
  const Registers young = answer(CPUID_INDEX_7), extended = answer(CPUID_INDEX_80000001);
  has.avx2 = has_all(old.c, bit_AVX | bit_FMA | bit_F16C) &&
             has_all(young.b, bit_AVX2 | bit_BMI | bit_BMI2) && has_all(extended.c, bit_LZCNT);
  if (!has.avx2) return has;
  has.avx512 = has_all(saved, kVectors512) &&
               has_all(young.b, bit_AVX512F | bit_AVX512VL | bit_AVX512DQ | bit_AVX512BW | bit_AVX512CD);
  const Registers younger = answer(CPUID_INDEX_7_ECX_1);
  has.avx_vnni = has_all(younger.a, bit_AVXVNNI);
  if (!has.avx512) return has;
  has.avx512_vnni = has_all(young.c, bit_AVX512VNNI);
  has.avx512_vbmi = has_all(young.c, bit_AVX512VBMI);
  has.avx512_bf16 = has_all(younger.a, bit_AVX512BF16);
  has.wide_aes = has_all(young.c, bit_VAES);
  has.amx_int8 = has_all(young.d, bit_AMX_TILE | bit_AMX_INT8);
  has.amx_bf16 = has_all(young.d, bit_AMX_BF16);
  return has;
}
#else
Processor ask_processor() {
  return {};
}
#endif

}  // namespace

const Processor& processor() noexcept {
  static const Processor found = ask_processor();
  return found;
}

}  // namespace plimsoll
