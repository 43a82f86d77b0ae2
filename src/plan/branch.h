// Branch and bound on the question: is there a placement of these items within this capacity?
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "plan/space.h"

namespace plimsoll::plan {

enum class Outcome { kFound, kImpossible, kStopped };

// Buffers are placed in order of rising offset, each as low as the ones below it allow. Every solution can be
// pushed down into this form, so nothing else is tried. Given the buffers still to place, all that matters of
// the past is the least offset each of them can have ("rest"). A branch is left when
//  - in some section, stacking its remaining buffers from their rests passes the capacity;
//  - the same remaining buffers with the same rests have failed before (kept as 64-bit hashes, so a false
//  match
//    is possible in principle, at one in 10^19 per lookup);
//  - another buffer would fit entirely below the one to place: placing it there is never worse.
// When the remaining buffers fall apart into groups that never live together, each group is solved alone.
class Branch {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Branch(const std::vector<Item>& items);

  // Tries buffers of equal rest in order of rising `rank`. Gives up after `nodes` branches or at the
  // deadline. What has failed is remembered for later calls, whose capacity must not be larger (else call
  // forget).
  Outcome run(int64_t capacity, const std::vector<double>& rank, int64_t nodes, Clock::time_point deadline);
  void forget();

  // After kFound: per item.
  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  struct Waiting {
    int item;
    int64_t rest;  // it cannot be placed lower
  };
  using Group = std::vector<Waiting>;  // by item, hence by `first`

  Outcome solve(Group& group);
  Outcome place_and_solve(const Group& group, const Waiting& next);
  bool fits(const Group& by_rest);
  bool out_of_time();
  uint64_t hash(const Group& group) const;
  std::vector<Group> split(const Group& group) const;
  bool twin_tried(const Group& by_rest, size_t i) const;

  const std::vector<Item>& items_;
  std::vector<int64_t> offsets_;
  std::vector<int64_t> top_;      // per section; scratch of fits()
  std::vector<uint64_t> failed_;  // direct-mapped by hash
  const std::vector<double>* rank_ = nullptr;
  int64_t capacity_ = 0;
  int64_t nodes_left_ = 0;
  Clock::time_point deadline_;
};

}  // namespace plimsoll::plan
