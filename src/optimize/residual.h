// An Add of two values of one shape becomes part of the operator that makes one of them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "optimize/pipeline.h"

namespace plimsoll {

struct ResidualForm {
  std::string_view fused;  // the operator of ours that takes an addend
  // The inputs of `fused` that do what `product` does with `addend` added; none if it cannot take one.
  std::optional<std::vector<Edge*>> (*with_addend)(const Node* product, Edge* addend);
};

bool fuse_residuals(Graph& root, const ResidualForm& form, const OptimizeOptions& options);

}  // namespace plimsoll
