// State that a run changes: when its next value is written, and the proof that nobody reads the old one after
// that.
#pragma once

#include <string>
#include <vector>

#include "prepare/lifetimes.h"

namespace plimsoll {

// Moves each node that only makes next values of states, and may overwrite them, behind the last reader of
// the old ones, and no further: written in place, with what it reads (gradients) dead as early as can be. The
// others stay in their order; what cannot be moved is stored at the end of the run.
Schedule settle_updates(const Graph& graph, FactsTable& facts, const Schedule& order,
                        const LifetimeOptions& options, TransientMemory& memory);

// Follows the contents of every state through the steps, independently of what placed them: what is wrong,
// in words. Empty: every read sees the value that the schedule means, every state gets its next value once.
std::vector<std::string> check_updates(const Lifetimes& lifetimes);

}  // namespace plimsoll
