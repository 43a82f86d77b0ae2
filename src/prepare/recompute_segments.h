// Where the part of an order before some turn can be cut into a chain: between turns where little of what was
// made is still to be read.
#pragma once

#include "prepare/turn_model.h"

namespace plimsoll {

// What crosses the middle of an order: values made before the turn `middle` and read after it, and what of
// the turns before is still to be read by others of them.
class Segments {
 public:
  // `live` has just simulated `turns`.
  Segments(const TurnModel& model, const LiveBytes& live, std::span<const uint32_t> turns, uint32_t middle,
           std::pmr::memory_resource* memory);

  // Cuts with the fewest bytes across, such that what is made between two of them and read after the middle
  // is at most `most_bytes` (where one turn allows it).
  std::pmr::vector<uint32_t> cuts(int64_t most_bytes) const;
  int64_t needed_bytes() const { return needed_before_.back(); }
  uint32_t middle() const { return middle_; }
  // What a view looks at in the end; itself if it is none.
  uint32_t root(uint32_t value) const { return root_[value]; }
  // Of roots: made before the middle, read after it, also through views.
  bool is_needed(uint32_t value) const { return needed_[value]; }
  // Of roots: whether it is made before turn `cut` and read by a turn from there to the middle.
  bool crosses(uint32_t value, uint32_t cut) const;

 private:
  const LiveBytes& live_;
  uint32_t middle_;
  std::pmr::vector<uint32_t> root_, last_before_;  // by value
  std::pmr::vector<bool> needed_;
  std::pmr::vector<int64_t> needed_before_;  // by turn: bytes of needed values made earlier
  std::pmr::vector<int64_t> across_;         // by turn: bytes that cross in front of it
  std::pmr::vector<uint32_t> narrow_;        // turns in front of which the fewest cross, 0 and the middle
};

}  // namespace plimsoll
