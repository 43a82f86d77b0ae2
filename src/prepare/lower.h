// What every level of optimization needs done first.
#pragma once

#include "graph/graph.h"

namespace plimsoll {

// Replaces every node, in bodies too, that names a local function of the model by the function's body:
// its inputs and outputs take the place of the body's, references to attributes the caller's values or
// the defaults. Functions may call others; one that reaches itself is an Error (kInvalidModel). Names
// of new edges and nodes begin with the caller's name and stay unique. Nodes need not be resolved, and
// new ones are not.
void inline_functions(Graph& root);

}  // namespace plimsoll
