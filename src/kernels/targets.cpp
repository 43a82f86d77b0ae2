// What Highway's headers want to find when they choose between targets. Its own library has the same
// functions, and measures the resolution of the clock for four milliseconds when it is loaded: as much as
// opening a compiled model takes.
#include <hwy/highway.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "base/processor.h"
#include "kernels/instructions.h"

#if HWY_ARCH_X86
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
#endif

int64_t detected_targets() {
#if HWY_ARCH_X86
  const plimsoll::Processor& has = plimsoll::processor();
  int64_t targets = 0;
  const auto add = [&](bool found, int64_t target) {
    if (found) targets |= target;
  };
  add(has.ssse3, HWY_SSSE3);
  add(has.sse4, HWY_SSE4);
  add(has.avx2, HWY_AVX2);
  add(has.avx512, HWY_AVX3);
  add(has.avx_vnni, kAvxVnni);
  add(has.avx512_vnni, kAvx512Vnni);
  add(has.avx512_bf16, kAvx512Bf16);
  const bool has_tiles = has.avx512_vnni && has.amx_int8 && allows_tiles();
  add(has_tiles, kAmxInt8);
  add(has_tiles && has.avx512_bf16 && has.amx_bf16, kAmxBf16);
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
