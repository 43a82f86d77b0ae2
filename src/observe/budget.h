// How often a costly reading is affordable.
#pragma once

#include <cstdint>

namespace plimsoll {

// Counts processor time against a share of the time that passes. Times in seconds; pure.
class CostBudget {
 public:
  explicit CostBudget(double share) : share_(share) {}

  // The first costly reading is always made, and so is a second one soon, unless that costs very much: only
  // two tell what grows.
  bool affords_full(double elapsed) const noexcept {
    return fulls_ == 0 || (fulls_ == 1 && elapsed >= kSecondAfter && last_full_ <= kVeryMuch) ||
           spent_ + last_full_ <= share_ * elapsed || share_ >= 1;
  }
  void charge(double seconds, bool full) noexcept {
    spent_ += seconds;
    if (!full) return;
    last_full_ = seconds;
    ++fulls_;
  }
  // What has a budget of its own, and does not make full readings rarer.
  void charge_apart(double seconds) noexcept { apart_ += seconds; }
  double spent() const noexcept { return spent_ + apart_; }

 private:
  static constexpr double kSecondAfter = 2, kVeryMuch = 0.05;

  double share_;
  double spent_ = 0, apart_ = 0;
  double last_full_ = 0;  // what the last one cost
  int64_t fulls_ = 0;
};

}  // namespace plimsoll
