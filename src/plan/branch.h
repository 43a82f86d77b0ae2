// Branch and bound on the question: is there a placement of these items within this capacity?
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "plan/space.h"

namespace plimsoll::plan {

class ItemSet {
 public:
  explicit ItemSet(size_t items = 0) : words_((items + 63) / 64) {}
  void insert(int i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  bool contains(int i) const { return words_[i / 64] >> (i % 64) & 1; }
  void clear_all() { words_.assign(words_.size(), 0); }
  void insert_all(const ItemSet& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
  }

 private:
  std::vector<uint64_t> words_;
};

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

  explicit Branch(const std::pmr::vector<Item>& items);

  // Tries buffers of equal rest in order of rising `rank`. Gives up after `nodes` branches or at the
  // deadline. What has failed is remembered for later calls, whose capacity must not be larger (else call
  // forget).
  Outcome run(int64_t capacity, const std::vector<int>& rank, int64_t nodes, Clock::time_point deadline);
  void forget();

  // After kFound: per item.
  const Offsets& offsets() const { return offsets_; }

 private:
  struct Waiting {
    int64_t rest;  // it cannot be placed lower
    int rank, item;
    uint64_t hash;  // of item and rest
  };
  using Group = std::vector<Waiting>;  // by rest, then rank
  struct Failure {
    uint64_t key = 0;  // the sum of the group's hashes
    ItemSet conflict;
  };
  struct Range {
    int first, last;
  };

  Outcome solve(const Group& group, Range changed);
  Outcome place_and_solve(const Group& group, const Waiting& next);
  bool raise(const Group& group, const Waiting& next, Group& remaining, Group& raised);
  std::vector<Group> split(Group&& group);
  bool fits(const Group& group, Range changed);
  bool twin_tried(const Group& group, size_t i, const ItemSet& tried) const;
  void blame(const Group& group, int section);
  bool out_of_time();

  const std::pmr::vector<Item>& items_;
  Offsets offsets_;
  ItemSet conflict_;             // after kImpossible: items that cannot be placed from their rests
  std::vector<int64_t> top_;     // per section; scratch of fits()
  std::vector<int> reach_;       // per section; scratch of split()
  std::vector<Failure> failed_;  // direct-mapped by key
  int64_t capacity_ = 0;
  int64_t nodes_left_ = 0;
  Clock::time_point deadline_;
};

}  // namespace plimsoll::plan
