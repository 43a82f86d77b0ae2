// Indices that come as data, of an axis of `size` elements.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

// Negative ones count from the end. Throws kInvalidArgument, naming the node, for one that the axis does not
// have.
template <typename I>
int64_t checked_index(const RunContext& c, I given, int64_t size) {
  const int64_t index = given;
  if (index < -size || index >= size)
    fail(ErrorCode::kInvalidArgument, "{}: index {} is outside [{}, {})", c.node->label(), index, -size,
         size);
  return index < 0 ? index + size : index;
}

}  // namespace plimsoll
