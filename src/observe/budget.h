// How often a costly reading is affordable.
#pragma once

namespace plimsoll {

// Counts processor time against a share of the time that passes. Times in seconds; pure.
class CostBudget {
 public:
  explicit CostBudget(double share) : share_(share) {}

  // The first costly reading is always made.
  bool affords_full(double elapsed) const noexcept {
    return last_full_ < 0 || spent_ + last_full_ <= share_ * elapsed || share_ >= 1;
  }
  void charge(double seconds, bool full) noexcept {
    spent_ += seconds;
    if (full) last_full_ = seconds;
  }
  // What has a budget of its own, and does not make full readings rarer.
  void charge_apart(double seconds) noexcept { apart_ += seconds; }
  double spent() const noexcept { return spent_ + apart_; }

 private:
  double share_;
  double spent_ = 0, apart_ = 0;
  double last_full_ = -1;  // what the last one cost
};

}  // namespace plimsoll
