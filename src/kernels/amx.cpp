#include "kernels/amx.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace plimsoll::kernels {
namespace {

#if defined(__x86_64__)

// Bits of EDX of leaf 7.
constexpr unsigned kBf16Bit = 1u << 22, kTileBit = 1u << 24, kInt8Bit = 1u << 25;
constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, and the state's number

unsigned amx_bits() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kTileBit) == 0) return 0;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 ? d : 0;
}

#else

constexpr unsigned kBf16Bit = 0, kTileBit = 0, kInt8Bit = 0;
unsigned amx_bits() {
  return 0;
}

#endif

bool allows(unsigned bit) {
  static const unsigned bits = amx_bits();
  return (bits & bit) != 0;
}

}  // namespace

bool amx_allowed() {
  return allows(kTileBit);
}
bool amx_int8_allowed() {
  return allows(kInt8Bit);
}
bool amx_bf16_allowed() {
  return allows(kBf16Bit);
}

}  // namespace plimsoll::kernels
