// Which values are worth keeping in half their bytes between the forward and the backward part.
#pragma once

#include "prepare/schedule.h"
#include "train/stash.h"

namespace plimsoll {

// A step that makes these outputs, the last of which are the next values of `updated`, at these shapes.
struct StepShape {
  std::span<Edge*const> wanted, updated;
  const std::vector<std::vector<int64_t>>& shapes;  // one per input
  int threads = 1;
};

// Of `stashes`, those without which the planned peak would be larger: where the most is alive, all that
// nobody reads just then are taken, and again where the most is alive after that, until there is none. What
// stays float would lower no peak. Does not depend on any limit.
std::vector<Stash> worth_rounding(const Graph& graph, std::vector<Stash> stashes, const StepShape& step);

}  // namespace plimsoll
