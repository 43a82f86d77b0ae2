// What Highway's headers want to find when they choose between targets. Its own library has the same
// functions, and measures the resolution of the clock for four milliseconds when it is loaded: as much as
// opening a compiled model takes.
#include <hwy/highway.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "kernels/instructions.h"

#if HWY_ARCH_X86
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace hwy {
namespace {

#if HWY_ARCH_X86
using plimsoll::kernels::kAmxBf16;
using plimsoll::kernels::kAmxInt8;
using plimsoll::kernels::kAvx512Bf16;
using plimsoll::kernels::kAvx512Vnni;
using plimsoll::kernels::kAvxVnni;

// Linux saves tiles for processes that asked for them once. Where it does not know of them, or a signal stack
// is too small for them, it says no.
bool allows_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
#if defined(SYS_arch_prctl)
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

bool has_bit(unsigned subleaf, unsigned cpuid_register, unsigned bit) {
  unsigned r[4] = {};
  return __get_cpuid_count(7, subleaf, &r[0], &r[1], &r[2], &r[3]) != 0 &&
         ((r[cpuid_register] >> bit) & 1) != 0;
}
bool has_avx_vnni() {
  return has_bit(1, 0, 4);
}
bool has_amx_int8() {
  return has_bit(0, 3, 24) && has_bit(0, 3, 25) && allows_tiles();
}
bool has_amx_bf16() {
  return has_bit(0, 3, 22);
}
bool has_avx512_bf16() {
  return has_bit(1, 0, 5);
}
#endif

int64_t detected_targets() {
#if HWY_ARCH_X86
  __builtin_cpu_init();
  int64_t targets = 0;
  const auto add = [&](bool has, int64_t target) {
    if (has) targets |= target;
    return has;
  };
  const bool ssse3 = add(__builtin_cpu_supports("ssse3"), HWY_SSSE3);
  const bool sse4 = add(ssse3 && __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
                            __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes"),
                        HWY_SSE4);
  const bool avx2 = add(sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                            __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                            __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt"),
                        HWY_AVX2);
  const bool avx3 = add(avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512cd"),
                        HWY_AVX3);
  add(avx2 && has_avx_vnni(), kAvxVnni);
  const bool vnni = add(avx3 && __builtin_cpu_supports("avx512vnni"), kAvx512Vnni);
  const bool amx = add(vnni && has_amx_int8(), kAmxInt8);
  const bool bf16 = add(avx3 && has_avx512_bf16(), kAvx512Bf16);
  add(amx && bf16 && has_amx_bf16(), kAmxBf16);
  return targets;
#else
  return HWY_STATIC_TARGET;
#endif
}

std::atomic<int64_t>& narrowed() {
  static std::atomic<int64_t> targets{0};  // 0: not
  return targets;
}

}  // namespace

int64_t SupportedTargets() {
  static const int64_t detected = detected_targets();
  const int64_t set = narrowed().load();
  return set != 0 ? set : detected;
}

void SetSupportedTargetsForTest(int64_t targets) {
  narrowed().store(targets);
  GetChosenTarget().DeInit();  // kernels choose anew
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

void Abort(const char* file, int line, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "%s:%d: ", file, line);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  std::abort();
}

}  // namespace hwy

namespace plimsoll::kernels {

bool may_use(int64_t instructions) {
  return (hwy::SupportedTargets() & instructions) == instructions;
}

}  // namespace plimsoll::kernels
