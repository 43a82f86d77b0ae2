// What the system hands out at once where memory is asked for in large pieces.
#pragma once

#include <cstdint>

namespace plimsoll {

inline constexpr int64_t kHugePageBytes = 2 << 20;

}  // namespace plimsoll
