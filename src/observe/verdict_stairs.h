// Heaps that grow in large stairs: by a factor, or by a fixed piece, whenever they are full.
#pragma once

#include <optional>

#include "observe/verdict_turns.h"

namespace plimsoll {

// What fills a heap at a steady rate fills each stair at a time that is a line of the stair's height. Where
// the steps are on such a line, and the next one is not overdue, the heap is still being filled. `points`
// without spikes; a step is at least `material`.
std::optional<MarkedRise> find_stairs(const Points& points, double material);

}  // namespace plimsoll
