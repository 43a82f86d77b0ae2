// The configuration of AMX's tiles. Whoever uses them configures before and releases after, on every thread:
// registers that are released need not be saved.
#pragma once

#include <array>
#include <cstdint>

namespace plimsoll::kernels {

// What _tile_loadconfig reads: eight tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  std::array<uint8_t, 14> reserved{};
  std::array<uint16_t, 16> row_bytes{64, 64, 64, 64, 64, 64, 64, 64};
  std::array<uint8_t, 16> rows{16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);
// In memory, whole: GCC 12 takes _tile_loadconfig to read eight bytes, and leaves out stores to the rest.
inline constexpr TileConfig kWholeTiles;

}  // namespace plimsoll::kernels
