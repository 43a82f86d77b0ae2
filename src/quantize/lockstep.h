// Two models in one graph, so that they run in lockstep: right behind each value of the first and its
// counterpart in the second stands a sink that tells how far apart they are. Neither model keeps a value for
// the other longer than it must.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace plimsoll {

// The second model's nodes and values have this before their names.
inline constexpr std::string_view kSecondModel = "second model";

struct ComparedValue {
  std::string name, other;    // in the first model and in the second
  std::string node, op_type;  // that make it in the first
  bool is_output = false;     // of the first model
};

// Adds the second model, whose functions are inlined and which lives in the arena of the first, as nodes of
// the first. Its inputs become those of the first of the same names, cast where types differ. Throws
// kInvalidArgument of an input that the first has not. What names the outputs of the second now have is
// returned.
std::vector<std::string> call_second_model(Graph& first, Graph& second);

struct LockstepOptions {
  bool outputs_only = false;
  bool each_by_itself = false;  // what uses a counterpart in the second model uses the first model's value
};
// The graph is inferred, calls inlined. Values that have a counterpart: one of the same name, or
// NAME_quantized, or NAME_DequantizeLinear_Output; outputs also by their place. The only output of the graph
// becomes the numbers of all pairs (ops/observe_difference.h), in the order of what is returned.
std::vector<ComparedValue> observe_differences(Graph& graph, const std::vector<std::string>& second_outputs,
                                               const LockstepOptions& options);

}  // namespace plimsoll
