// Runs one operator by itself: constant folding, runs whose shapes depend on data, tests. The only
// place besides the executor that calls an operator's run.
#pragma once

#include <span>
#include <vector>

#include "graph/infer.h"

namespace plimsoll {

// Facts that say all there is to know of a tensor at hand. The view must outlive them.
Facts facts_of(const TensorView& view, BumpArena& arena);

// Runs a resolved node on tensors at hand; the results live in `arena`, so does the scratch. Inputs
// must be aligned to their element. Throws kNotImplemented for operators with bodies.
std::vector<TensorView> invoke(const Node& node, std::span<const TensorView> inputs, BumpArena& arena,
                               DimPool& pool, int threads = 1);

}  // namespace plimsoll
