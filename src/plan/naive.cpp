#include "plan/placement.h"
#include "plan/space.h"

namespace plimsoll::plan {

std::optional<Placement> place_naive(const Problem& problem) {
  validate(problem);
  Placement placement = blank_placement(problem);
  for (int s = 0; s < space_count(problem); ++s) {
    const Space space = make_space(problem, s);
    if (space.pins_collide) return std::nullopt;
    store(space, stacked(space), s, placement);
    if (placement.peak[s] > space.capacity) return std::nullopt;
  }
  return placement;
}

}  // namespace plimsoll::plan
