// What ScatterElements and ScatterND do where an update meets an element.
#pragma once

#include <algorithm>
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

}  // namespace plimsoll
