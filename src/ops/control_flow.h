// What the runtime needs to know of the operators that have bodies.
#pragma once

#include "graph/graph.h"

namespace plimsoll {

struct IfAttrs {
  Graph* then_branch = nullptr;
  Graph* else_branch = nullptr;
};

struct LoopAttrs {
  Graph* body = nullptr;
};

// The bodies of a node, in the order of their attributes.
std::vector<Graph*> bodies_of(const Node& node);
// Edges of enclosing graphs that the node's bodies use, each once.
std::vector<Edge*> captured_edges(const Node& node);

}  // namespace plimsoll
