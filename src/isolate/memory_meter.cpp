#include "isolate/memory_meter.h"

#include <algorithm>

namespace plimsoll {

void MemoryMeter::add(Clock::time_point now, int64_t bytes, int64_t peak_bytes) noexcept {
  constexpr std::chrono::microseconds kLongestPause{50000};
  const double seconds = std::chrono::duration<double>(now - last_time_).count();
  const auto from = static_cast<double>(last_bytes_), to = static_cast<double>(bytes);
  const double over = peak_bytes > last_peak_bytes_ ? static_cast<double>(peak_bytes) : std::max(from, to);
  const bool rose = over > std::max(from, to);
  byte_seconds_ += seconds * (rose ? (from + 2 * over + to) / 4 : (from + to) / 2);
  last_time_ = now;
  last_bytes_ = bytes;
  last_peak_bytes_ = std::max(last_peak_bytes_, peak_bytes);
  pause_ = std::min(pause_ * 2, kLongestPause);
}

}  // namespace plimsoll
