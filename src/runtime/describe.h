// From internal structures to the public descriptions.
#pragma once

#include "plimsoll/model.h"
#include "prepare/requirement.h"

namespace plimsoll {

PrepareOptions prepare_options(const SessionOptions& options);
ModelInfo describe_model(Graph& graph);
ModelMetadata describe_metadata(const PreparedModel& model);
ValueInfo describe_edge(const Edge& edge);
std::vector<ValueInfo> describe_inputs(const Graph& graph);
std::vector<ValueInfo> describe_overridable(const Graph& graph);
std::vector<std::string> describe_warnings(const Graph& graph);

Plan describe_plan(const PreparedModel& model, const ShapePlan& shape);

// One shape per input: the caller's where given, the model's own otherwise. Throws kInvalidArgument
// naming an input whose shape is not known, or a name that is not an input. Empty result: `partial`
// was allowed and some shape is missing.
std::vector<std::vector<int64_t>> complete_shapes(const Graph& graph, const Shapes& shapes, bool partial);

}  // namespace plimsoll
