// A model differentiated into two graphs: one that makes the outputs and leaves what the other will read, and
// one that makes gradients from it. For callers with an autograd of their own, which run something between
// the two (docs/training-python.md).
#pragma once

#include <string>
#include <vector>

#include "train/forward.h"
#include "train/memory_optimizer.h"

namespace plimsoll {

// What differentiate_model() made of a graph. Its inputs are the model's, then the cotangents; its outputs
// the model's, then next values of running statistics, then gradients.
struct DifferentiatedModel {
  size_t inputs = 0, outputs = 0;                               // of the model
  std::vector<bool> differentiable;                             // by output: it changes with an x
  std::vector<std::string> cotangents;                          // of those, in order
  std::vector<std::pair<std::string, std::string>> statistics;  // an input of the model, its next value
  std::vector<std::string> gradients;                           // by x; "" if no output depends on it
  bool draws = false;                                           // random numbers
};

// The graph is lowered and inferred; the same is true afterwards. `xs` are
// inputs of floats; what is not among the inputs has no gradient.
// BatchNormalization that trains gives the next running statistics, the variance as PyTorch has it (that of
// the samples, not of the batch); one that stands twice changes them twice. Throws kNotImplemented naming
// what has no gradient, kInvalidArgument.
DifferentiatedModel differentiate_model(Graph& graph, const std::vector<std::string>& xs);

enum class ModelPart : uint8_t { kForward, kBackward };

// Which nodes are whose, in a graph that differentiate_model() made and that was optimized since.
class ModelSplit {
 public:
  ModelSplit(const Graph& graph, const DifferentiatedModel& model);

  // What is forward, and what it leaves if nothing runs again.
  const ForwardPart& forward() const { return forward_; }
  // Edges that the forward part leaves, if these forward nodes (by id) run again behind it. Views, and
  // movements of what the backward part has anyway, always do.
  std::vector<Edge*> stashed(const std::vector<bool>& again) const;
  // Keeps one part of the graph. What is stashed is the last outputs of the forward part that are not the
  // model's anyway, and inputs of the backward part by the same names, which are returned.
  std::vector<std::string> keep(Graph& graph, ModelPart part, const std::vector<bool>& again) const;

 private:
  std::vector<Node*> backward_nodes(const std::vector<bool>& again, std::vector<Edge*>& stashed) const;
  bool is_free(const Node& node) const;

  const Graph& graph_;
  const DifferentiatedModel& model_;
  ForwardPart forward_;
  std::vector<bool> available_;  // by edge id: made of inputs and constants by movements alone
  std::vector<bool> rounds_;     // by node id: for the backward part alone
};

// The bytes of an edge whose shape is known; 0 otherwise.
int64_t stashed_bytes(const Facts& facts);

}  // namespace plimsoll
