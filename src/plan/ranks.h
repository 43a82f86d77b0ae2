// The orders in which branch and bound tries buffers of equal rest.
#pragma once

#include <array>
#include <random>
#include <vector>

#include "plan/space.h"

namespace plimsoll::plan {

// A longer lifetime, a larger area, a busier time come first, each with another weight. No order wins
// everywhere, so they take turns; after the first round noise is added, since a search that has gone wrong
// near its root is cheaper to restart than to finish. Always the same sequence for the same
// calls.
class Ranks {
 public:
  explicit Ranks(const Space& space) : space_(space) {}

  std::vector<int> next();  // per item, 0 is tried first
  int turn() const { return turn_; }
  void restart() { turn_ = 0; }  // without noise again; the noise to come is new

  static constexpr int kKinds = 4;  // turns without noise

 private:
  static constexpr double kNoise = 0.25;

  std::array<double, 3> key(const Item& item);

  const Space& space_;
  std::mt19937 random_;
  int turn_ = 0;
};

}  // namespace plimsoll::plan
