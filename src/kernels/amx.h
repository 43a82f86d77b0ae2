// Tiles of Intel's AMX: whether this process may use them, and their configuration.
//
// Linux keeps their registers, 8 KiB a thread, from a process until it asks. Whoever uses them configures
// before and releases after, on every thread: registers that are released need not be saved.
#pragma once

#include <array>
#include <cstdint>

namespace plimsoll::kernels {

// The processor has tiles, and the kernel lets this process use them. Asked for once, at the first call;
// false under Valgrind, in old kernels and on other processors.
bool amx_allowed();
// Likewise, and with products of 8-bit integers, or of bfloat16.
bool amx_int8_allowed();
bool amx_bf16_allowed();

// What _tile_loadconfig reads: eight tiles of 16 rows of 64 bytes.
struct alignas(64) AmxTiles {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  std::array<uint8_t, 14> reserved{};
  std::array<uint16_t, 16> row_bytes{64, 64, 64, 64, 64, 64, 64, 64};
  std::array<uint8_t, 16> rows{16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(AmxTiles) == 64);
// In memory, whole: GCC 12 takes _tile_loadconfig to read eight bytes, and leaves out stores to the rest.
inline constexpr AmxTiles kWholeTiles;

}  // namespace plimsoll::kernels
