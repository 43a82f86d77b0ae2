#pragma once

#include "graph/op_def.h"

namespace plimsoll {

// Output 0 of a MaxPool, whose attributes are PoolAttrs.
void run_max_pool(const RunContext& c);

}  // namespace plimsoll
