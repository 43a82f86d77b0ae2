// Activations as rewrites see them: a name and parameters, as the fused operators take them.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "optimize/editor.h"

namespace plimsoll {

struct ActivationForm {
  std::string_view name;
  std::vector<float> params;
};
// The activation that a node is: Relu, Clip with constant bounds, Sigmoid, Silu, ... Nullopt if none.
std::optional<ActivationForm> activation_of(const Node& node);
void set_activation(AttributeList& attributes, const ActivationForm& form);
// A fused operator that applies one already.
bool has_activation(const Node& node);

// The bounds of a Clip if they are constants; an absent bound is the type's extreme.
std::optional<std::pair<float, float>> clip_bounds(const Node& clip);

}  // namespace plimsoll
