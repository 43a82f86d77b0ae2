// Instructions beyond those of Highway's targets, which kernels name for themselves. They are more bits of
// hwy::SupportedTargets(), so that one mask says what a process may use.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

inline constexpr int64_t kAvxVnni = int64_t{1} << 40;     // products of bytes, in vectors of 256 bits
inline constexpr int64_t kAvx512Vnni = int64_t{1} << 41;  // the same in 512
inline constexpr int64_t kAmxInt8 = int64_t{1} << 42;     // of tiles of bytes; the kernel lets us use them
inline constexpr int64_t kAmxBf16 = int64_t{1} << 43;     // of bfloat16
inline constexpr int64_t kAvx512Bf16 = int64_t{1} << 44;  // vectors of bfloat16
inline constexpr int64_t kOwnInstructions = kAvxVnni | kAvx512Vnni | kAmxInt8 | kAmxBf16 | kAvx512Bf16;

// Whether this machine has them and nobody held us to less.
bool may_use(int64_t instructions);

}  // namespace plimsoll::kernels
