// Losses as nodes of ONNX.
#pragma once

#include "graph/builder.h"
#include "plimsoll/training.h"

namespace plimsoll {

// Nodes in the version in which gradients are written, resolved and inferred as they are made.
class TrainBuilder : public GraphBuilder {
 public:
  TrainBuilder(Graph& graph, std::string_view prefix);

 private:
  void added(Node& node) override;
};

// The input for what a prediction is held against: classes of its shape without that of the classes, or as
// many numbers as there are predictions. Added to the graph's inputs.
Edge* add_labels(Graph& graph, const TrainingOptions& options, const Edge& prediction);

// The loss, a number without dimensions, of the prediction's type.
Edge* add_loss(Graph& graph, const TrainingOptions& options, Edge* prediction, Edge* labels);

}  // namespace plimsoll
