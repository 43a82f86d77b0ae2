// How many processes' shares of common pages may be asked for between full readings.
#pragma once

#include <time.h>

namespace plimsoll {

// The kernel walks every page of a process for it. However many come and go, the walks take no more than some
// milliseconds ahead and a share of the time that passes, and so many at a time; what is asked anew leaves a
// part of that to what was never asked.
class ShareBudget {
 public:
  explicit ShareBudget(double share) : share_(share), began_(seconds(CLOCK_MONOTONIC)) {}

  void begin_reading() noexcept { left_ = kMostPerReading; }
  bool affords(bool is_first) const noexcept {
    const double allowed = kAheadSeconds + share_ * (seconds(CLOCK_MONOTONIC) - began_);
    return left_ > 0 && spent_ <= (is_first ? allowed : allowed - kAheadSeconds / 3);
  }
  template <typename Walk>
  auto spend(Walk walk) {
    --left_;
    const double start = seconds(CLOCK_THREAD_CPUTIME_ID);
    auto result = walk();
    spent_ += seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    return result;
  }
  double spent() const noexcept { return spent_; }

 private:
  static constexpr int kMostPerReading = 64;
  static constexpr double kAheadSeconds = 0.006;

  static double seconds(clockid_t clock) noexcept {
    timespec now = {};
    ::clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }

  double share_;
  double began_;
  double spent_ = 0;
  int left_ = 0;
};

}  // namespace plimsoll
