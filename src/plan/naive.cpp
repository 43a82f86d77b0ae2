#include <algorithm>

#include "plan/placement.h"
#include "plan/space.h"

namespace plimsoll::plan {

std::optional<Placement> place_naive(const Problem& problem) {
  validate(problem);
  Placement placement = blank_placement(problem);
  for (int s = 0; s < space_count(problem); ++s) {
    const Space space = make_space(problem, s);
    if (space.pins_collide) return std::nullopt;
    int64_t& peak = placement.peak[s];
    for (const Item& item : space.items) {
      if (item.pinned != kNotPinned) peak = std::max(peak, item.pinned + item.size);
    }
    for (size_t i = 0; i < problem.buffers.size(); ++i) {
      const Buffer& b = problem.buffers[i];
      if (b.space != s || b.offset || b.size == 0) continue;
      placement.offsets[i] = align_up(peak, b.alignment);
      peak = placement.offsets[i] + b.size;
    }
    if (peak > space.capacity) return std::nullopt;
  }
  return placement;
}

}  // namespace plimsoll::plan
