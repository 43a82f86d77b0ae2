// Times that callers give: milliseconds::max() means "as long as it takes", and must not overflow the clock.
#pragma once

#include <algorithm>
#include <chrono>

namespace plimsoll {

inline std::chrono::milliseconds within_the_clock(std::chrono::milliseconds time) noexcept {
  constexpr std::chrono::milliseconds kCentury = std::chrono::hours(24 * 365 * 100);
  return std::min(time, kCentury);
}

}  // namespace plimsoll
