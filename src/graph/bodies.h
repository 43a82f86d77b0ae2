// Nodes with bodies: the graphs inside them, and what those use from outside.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/builder.h"
#include "graph/graph.h"

namespace plimsoll {

// The bodies of a node, in the order of their attributes.
std::vector<Graph*> bodies_of(const Node& node);
// Edges of enclosing graphs that the node's bodies use, each once.
std::vector<Edge*> captured_edges(const Node& node);
// Whether something inside is drawn at random: the same nodes elsewhere would draw something else.
bool has_random_nodes(const Graph& body);

using EdgeMap = std::unordered_map<const Edge*, Edge*>;

// Appends copies of the body's nodes to `into`, with what they know, and its constants. `edges` says what
// edges of the body are there (its inputs, say) and gets those that are made; what it does not name and the
// body does not make is of a graph around, and stays. New names begin with `prefix`. Nodes are resolved.
void copy_nodes(const Graph& body, Graph& into, EdgeMap& edges, std::string_view prefix, Resolver resolver);
// What became of an edge.
Edge* copy_of(const EdgeMap& edges, Edge* edge);
// Removes nodes that nothing needs of what the body gives out.
void remove_unused_nodes(Graph& body);

}  // namespace plimsoll
