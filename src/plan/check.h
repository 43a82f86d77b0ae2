// The judge of placements. Shares no code with the placers.
#pragma once

#include <string>
#include <vector>

#include "plan/placement.h"

namespace plimsoll::plan {

// Everything that is wrong with the placement, one sentence each, at most `limit`; empty if it is valid: one
// offset per buffer, none negative, aligned, pins respected, no two buffers sharing a byte while both are
// alive, every space within its capacity, every peak equal to the largest offset + size. Never throws.
std::vector<std::string> check(const Problem& problem, const Placement& placement, size_t limit = 20);

}  // namespace plimsoll::plan
