// Reverse mode: appends to a graph the nodes that make gradients, out of what each operator says of itself
// (OpDef::gradient, graph/gradient.h).
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace plimsoll {

// An edge to be differentiated, and the gradient that arrives at it, of its type and shape. Null: ones.
struct Cotangent {
  Edge* edge = nullptr;
  Edge* gradient = nullptr;
};

// The gradients of the sum of all `ys`, each times its cotangent, with respect to each of `xs`, of their
// types and shapes; null where no y depends on the x. The xs are independent of each other: if one is
// computed from another, what flows through it is not counted for the other.
//
// The graph is in order, its operators are lowered (prepare/lower.h) and not yet fused; nodes are resolved
// and facts are on the edges. The same is true afterwards. New nodes are at the end, so that those before
// `nodes.size()` of the call are the forward ones; they are called "<forward node>_grad/...". Only what the
// xs need is built, out of floats that lie between an x and a y. Gradients that meet are added in the reverse
// order of the nodes that they come from.
//
// Whatever has no gradient on the way is named in one Error (kNotImplemented), and then nothing is appended.
std::vector<Edge*> differentiate(Graph& graph, std::span<const Cotangent> ys, std::span<Edge* const> xs);

// Zeros of an edge's type and shape, for an x that nothing depends on.
Edge* zeros_like(Graph& graph, Edge* edge);

}  // namespace plimsoll
