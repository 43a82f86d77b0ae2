// One memory space of a problem in the form the placers work on.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/placement.h"

namespace plimsoll::plan {

inline constexpr int64_t kNotPinned = -1;

struct Item {
  int64_t size, alignment;
  int64_t pinned;   // offset or kNotPinned
  double lifetime;  // in the problem's time units
  int first, last;  // alive in the sections [first, last)
  int buffer;       // index in the problem

  bool overlaps(const Item& other) const { return first < other.last && other.first < last; }
};

// Time is cut into sections, one per largest set of buffers alive together: two buffers are ever alive
// together if and only if they share a section. Buffers of size 0 are left out.
struct Space {
  explicit Space(std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : items(memory), live(memory) {}
  std::pmr::vector<Item> items;    // by `first`
  std::pmr::vector<int64_t> live;  // per section: the bytes alive
  int64_t capacity = kUnlimited;
  int64_t bound = 0;          // no peak is below: most bytes alive, highest pinned end
  bool pins_collide = false;  // no placement exists
};

Space make_space(const Problem& problem, int space);

// The parts of a space that are never alive together, each a space of its own. Their bounds are their own
// too.
std::vector<Space> split_in_time(const Space& space);

inline int64_t align_up(int64_t offset, int64_t alignment) {
  return (offset + alignment - 1) & ~(alignment - 1);
}

// The largest offset + size of items[i] placed at offsets[i].
int64_t peak_of(const Space& space, const Offsets& offsets);

// Offsets without any reuse: pins where they are, the others one above the other, above all pins.
Offsets stacked(const Space& space);

// Writes one space's offsets, given per item, into the placement; sets its peak.
void store(const Space& space, const Offsets& offsets, int index, Placement& placement);

// A placement with every buffer at its pin or at 0, which is final for buffers of size 0 only.
Placement blank_placement(const Problem& problem);

// The race behind place_greedy, for one space: the offsets per item of the lowest peak found that is at most
// `limit`, or empty if there is none (a space without items has none either).
Offsets greedy_race(const Space& space, int64_t limit);

}  // namespace plimsoll::plan
