// ai.onnx.preview.training.Gradient becomes the nodes of the derivative. Every level of optimization needs
// it.
#pragma once

#include "graph/graph.h"

namespace plimsoll {

// Replaces every Gradient node, in bodies too. It differentiates by names: `y` as a function of `xs` and
// `zs`, at the values of its inputs; where those are other edges than the named ones, what lies between is
// computed again for them. A gradient may be differentiated again. Operators are lowered, nodes resolved,
// facts on the edges; the same is true afterwards, but for facts of what depends on the new nodes. True if
// anything changed.
bool lower_gradients(Graph& root);

}  // namespace plimsoll
