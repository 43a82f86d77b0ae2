// From internal structures to the public descriptions.
#pragma once

#include "plimsoll/model.h"
#include "prepare/shape_plan.h"

namespace plimsoll {

PrepareOptions prepare_options(const SessionOptions& options);
ModelInfo describe_model(Graph& graph);
ValueInfo describe_edge(const Edge& edge);

// What a session with this model and shape holds at its peak, and when.
struct Requirement {
  std::array<int64_t, kAccounts> accounts{};
  int64_t load_peak_bytes = 0;
  int64_t run_peak_bytes = 0;
  int64_t peak_bytes() const { return std::max(load_peak_bytes, run_peak_bytes); }
};
Requirement requirement(const PreparedModel& model, const ShapePlan& shape);
// Throws kBudgetExceeded naming the node that needs the most and the smallest limit that would do.
void check_fits(const PreparedModel& model, const ShapePlan& shape, int64_t limit_bytes);
Plan describe_plan(const PreparedModel& model, const ShapePlan& shape);

// One shape per input: the caller's where given, the model's own otherwise. Throws kInvalidArgument
// naming an input whose shape is not known, or a name that is not an input. Empty result: `partial`
// was allowed and some shape is missing.
std::vector<std::vector<int64_t>> complete_shapes(const Graph& graph, const Shapes& shapes, bool partial);

}  // namespace plimsoll
