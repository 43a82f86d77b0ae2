// Operators that do otherwise in training than in inference.
#pragma once

#include "graph/graph.h"

namespace plimsoll {

// Whether some node of the graph does something else in training.
bool differs_in_training(const Graph& graph);
// Copies all nodes, so that the graph's outputs, and `edges`, are those of the copies from now on, made as in
// inference. Throws kNotImplemented of nodes with bodies.
void copy_for_evaluation(Graph& graph, std::span<Edge*> edges);
// The first `count` nodes do as in training: BatchNormalization takes the batch's statistics and updates the
// running ones, which become state; Dropout drops.
void set_training_mode(Graph& graph, size_t count);

}  // namespace plimsoll
