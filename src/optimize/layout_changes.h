// Carries out what operators say has to change when their axes move (graph/layout.h).
#pragma once

#include <vector>

#include "graph/layout.h"
#include "optimize/editor.h"

namespace plimsoll {

// A Transpose of `edge` just before `place`.
Edge* transposed(Node& place, Edge& edge, const std::vector<int64_t>& perm, Editor& editor);
// A constant in the moved order: the same bytes where that will do, else a Transpose before `place`.
Edge* moved_constant(Node& place, Edge& constant, Editor& editor);
// What becomes of an input that is no port.
Edge* changed_input(Node& node, Edge* input, const NodeChanges::InputChange& change, Editor& editor);
// Gives the node an output of its own, from which the old one is gathered.
void put_output_in_order(Node& node, const Layout::OutputList& list, Editor& editor);

}  // namespace plimsoll
