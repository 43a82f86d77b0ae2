// What normalization operators share.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

// Throws if the vector input i is known not to have an element per channel.
inline void expect_channels(const InferContext& c, size_t i, Dim channels) {
  c.expect_rank(i, 1, 1);
  if (!c.ranked(i)) return;
  const Dim found = c.dims(i)[0];
  if (found.is_constant() && channels.is_constant() && !(found == channels))
    c.reject("input {}: expected {} elements, one per channel, found {}", i, channels.value(), found.value());
}

}  // namespace plimsoll
