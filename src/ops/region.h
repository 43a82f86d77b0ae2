// Regions of operators of one family; see graph/region.h.
#pragma once

#include "graph/region.h"

namespace plimsoll {

// Element by element, with broadcasting.
void region_broadcasting(RegionContext& c);
// Input `input` broadcast to the output: the part that meets what is wanted.
void need_broadcast(RegionContext& c, size_t input);
// Input 0 has the output's shape, and all of the axes first..last-1 is needed for any of them; the other
// inputs are needed whole.
void region_along(RegionContext& c, size_t first, size_t last);

}  // namespace plimsoll
