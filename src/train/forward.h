// Which nodes of a graph with gradients are the forward ones, what they leave for the others, and where the
// layers of a transformer begin.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace plimsoll {

// Makes bfloat16 of float: with the forward part, where it is of a result of it (train/stash.h).
bool is_rounding(const Node& node);

struct ForwardPart {
  std::vector<bool> nodes;    // by node id: what the outputs need, and what rounds such results
  std::vector<bool> stashed;  // by edge id: made by such a node, read by another
};
// `outputs`: the loss, and whatever else the forward part is for.
ForwardPart forward_part(const Graph& graph, std::span<Edge* const> outputs);

inline constexpr int kNoLayer = -1;

// By node id: the number of the layer, kNoLayer outside of all. A layer begins with a value that goes around
// attention: it is added to something that was computed from it through a Softmax or an attention operator.
// That is what norms read in exports with the norm first, and make in those with the norm last. The last
// layer ends with the next sum of that kind, or with the norm behind it.
struct Layers {
  std::vector<int> of_node;
  std::vector<const Edge*> begins;  // in order
  const Edge* end = nullptr;        // of the last
};
Layers find_layers(const Graph& graph, const ForwardPart& forward);

}  // namespace plimsoll
