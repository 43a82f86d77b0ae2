// What ScatterElements and ScatterND do where an update meets an element.
#pragma once

#include <algorithm>
#include <functional>
#include <string_view>

#include "ops/movement.h"

namespace plimsoll {

enum class ScatterReduction : uint8_t { kNone, kAdd, kMul, kMax, kMin };

// The attribute `reduction` as of opset 16.
ScatterReduction read_scatter_reduction(AttrContext& c);
// Data and updates have one type, and one that the reduction is defined for.
void check_scatter_types(InferContext& c, ScatterReduction reduction);
// target[i] = reduction(target[i], update[i]) for count elements.
void scatter_into(ScatterReduction reduction, ElementType type, std::byte* target, const std::byte* update,
                  int64_t count);

// The gradients of data and updates where they are reduced by mul, max or min. `scatter` reduces updates into
// data at the node's indices, `gather` reads there. The largest share evenly; products may hold zeros.
struct ScatterNodes {
  std::function<Edge*(Edge* data, Edge* updates, std::string_view reduction)> scatter;
  std::function<Edge*(Edge* data)> gather;
};
void gradient_reduced_scatter(GradientContext& c, ScatterReduction reduction, const ScatterNodes& nodes);

}  // namespace plimsoll
