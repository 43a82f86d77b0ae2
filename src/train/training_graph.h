// From a model to a training step: state, loss, gradients, updates, all in one graph. What a run wants of its
// outputs decides what it does.
#pragma once

#include "graph/graph.h"
#include "plimsoll/training.h"

namespace plimsoll {

// Which outputs each kind of run wants, by number, and what the graph was given.
struct TrainingGraph {
  std::vector<uint32_t> train;     // the loss, then all that a TrainStep changes
  std::vector<uint32_t> optimize;  // what an OptimizerStep changes; empty where a TrainStep does it
  std::vector<uint32_t> evaluate;  // the model's outputs in their order, then the loss
  size_t model_outputs = 0;
  std::vector<Edge*> parameters;  // trained
  std::vector<Edge*> states;      // all persistent edges
  std::vector<Edge*> rounded;     // of mixed precision: results in bfloat16 (train/stash.h)
  bool has_labels = false;        // the last of the inputs that a caller gives
  size_t given_inputs = 0;        // these come first
  // Inputs behind them, by number; 0: there is none.
  size_t rate = 0, step = 0, reset = 0, scale = 0;
};

// The graph is lowered and inferred. Throws kNotImplemented naming what has no gradient, kInvalidArgument.
TrainingGraph build_training_graph(Graph& graph, const TrainingOptions& options);

// Whether a name is matched by a pattern, in which '*' stands for anything.
bool matches(std::string_view pattern, std::string_view name);

}  // namespace plimsoll
