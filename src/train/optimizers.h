// Optimizers as nodes: one per parameter, which changes it and its moments in place (ops/update_common.h).
#pragma once

#include "graph/graph.h"
#include "plimsoll/training.h"

namespace plimsoll {

// What changes from step to step and is the same for all parameters.
struct UpdateNumbers {
  Edge *rate = nullptr, *step = nullptr;
  Edge* scale = nullptr;  // of the gradients; null: 1
  Edge* guard = nullptr;  // nothing changes unless it is finite; null: always
};

// Adds the parameter's moments, named after it, and the node that updates both.
void add_optimizer(Graph& graph, const OptimizerOptions& options, Edge* parameter, Edge* gradient,
                   const UpdateNumbers& numbers);

}  // namespace plimsoll
