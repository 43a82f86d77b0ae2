// Mixed precision: what the forward part of a step keeps for the backward part, in bfloat16. Everything is
// computed in float as before, from float parameters (docs/decisions/0021-mixed-precision.md).
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace plimsoll {

// A float result of the forward part that the backward part reads, itself or through views of it.
struct Stash {
  Edge* edge = nullptr;
  std::vector<Node*> forward;   // who reads it while the forward part runs, in the graph's order
  std::vector<Node*> backward;  // who reads it behind, likewise; never empty
};

// What may be rounded to 8 bits of precision, in the order in which it is first read. `loss`: what the
// forward part is for; `wanted`: all that a step makes. Stays float: what losses read and logarithms,
// statistics of normalizations and results of reductions, what is compared with another result, positions
// that are sampled at, and what bodies look at from inside. The graph is resolved, inferred and in order.
std::vector<Stash> find_stashes(const Graph& graph, std::span<Edge* const> loss,
                                std::span<Edge* const> wanted);

// Each is rounded behind its last reader of the forward part, and widened before its first of the backward
// part. The graph stays resolved and in order, with facts on the edges. Returns the rounded values.
std::vector<Edge*> stash_in_bfloat16(Graph& graph, std::span<const Stash> stashes);

}  // namespace plimsoll
