// Elements of 4 bytes by a condition, with broadcasting.
#pragma once

#include "kernels/broadcast.h"

namespace plimsoll::kernels {

// y = condition ? a : b over one block, whose operands are the condition, a and b; y may be a or b where
// their element is at the same place.
void choose(const BroadcastBlock& block, const uint8_t* condition, const uint32_t* a, const uint32_t* b,
            uint32_t* y);

}  // namespace plimsoll::kernels
