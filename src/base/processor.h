// What this machine's processor has, and its operating system lets us use.
#pragma once

namespace plimsoll {

struct Processor {
  bool ssse3 = false;
  bool sse4 = false;    // 4.1 and 4.2, with AES and products without carries
  bool avx2 = false;    // with FMA, F16C and operations on bits
  bool avx512 = false;  // F, VL, DQ, BW and CD
  bool avx_vnni = false, avx512_vnni = false, avx512_vbmi = false, avx512_bf16 = false;
  bool wide_aes = false;                    // of vectors of 512 bits
  bool amx_int8 = false, amx_bf16 = false;  // whether Linux lets us use them is to be asked
};

// What C's library was told when the process started: a hypervisor answers each question in microseconds.
// Nothing on other machines than x86-64.
const Processor& processor() noexcept;

}  // namespace plimsoll
