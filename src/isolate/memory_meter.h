// Memory over time, from samples that become rarer, corrected by the kernel's own peak.
#pragma once

#include <chrono>
#include <cstdint>

namespace plimsoll {

class MemoryMeter {
 public:
  using Clock = std::chrono::steady_clock;

  void start(Clock::time_point now) noexcept { last_time_ = now; }
  // Between two samples memory is a straight line; if the peak rose meanwhile, it went over the peak.
  void add(Clock::time_point now, int64_t bytes, int64_t peak_bytes) noexcept;
  double byte_seconds() const noexcept { return byte_seconds_; }
  // When to look next: after 1 ms, then ever later, up to 50 ms.
  Clock::time_point next() const noexcept { return last_time_ + pause_; }

 private:
  Clock::time_point last_time_;
  std::chrono::microseconds pause_{1000};
  int64_t last_bytes_ = 0, last_peak_bytes_ = 0;
  double byte_seconds_ = 0;
};

}  // namespace plimsoll
