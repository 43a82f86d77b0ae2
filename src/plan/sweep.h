// A placement by going through time once: what a heap would do that sees every malloc and free.
#pragma once

#include "plan/space.h"

namespace plimsoll::plan {

// Each item in the smallest gap that holds it when it starts, else on top. n items take O(n log n). Empty if
// items are pinned.
Offsets swept(const Space& space);

}  // namespace plimsoll::plan
