// Nodes with bodies: the graphs inside them, and what those use from outside.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace plimsoll {

// The bodies of a node, in the order of their attributes.
std::vector<Graph*> bodies_of(const Node& node);
// Edges of enclosing graphs that the node's bodies use, each once.
std::vector<Edge*> captured_edges(const Node& node);

}  // namespace plimsoll
