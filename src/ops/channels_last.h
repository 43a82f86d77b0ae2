// Moving a float tensor between (N, C, spatial) and (N, spatial, C), for operators whose kernels want the
// latter.
#pragma once

#include <cstdint>

#include "graph/op_def.h"

namespace plimsoll {

// The attribute channels_last, which ONNX's own operators do not have: only in our domain.
inline bool read_channels_last(AttrContext& c) {
  return c.node().domain == kPlimsollDomain && c.integer("channels_last", 0) != 0;
}

// `pixels` is the number of positions of one image. Source and destination must not overlap.
void to_channels_last(int64_t batch, int64_t channels, int64_t pixels, const float* from, float* to,
                      int threads);
void to_channels_first(int64_t batch, int64_t channels, int64_t pixels, const float* from, float* to,
                       int threads);

}  // namespace plimsoll
