// The facts of a whole model at one concrete shape.
#pragma once

#include <vector>

#include "graph/infer.h"

namespace plimsoll {

// `shapes`: one per input. Small results whose inputs are known are computed. Throws kInvalidArgument if the
// shapes do not fit the model. What the table refers to lives in `arena`.
FactsTable concrete_facts(const Graph& graph, const std::vector<std::vector<int64_t>>& shapes,
                          BumpArena& arena, DimPool& pool);

}  // namespace plimsoll
