// Moving a float tensor between (N, C, spatial) and (N, spatial, C), for operators whose kernels want the
// latter.
#pragma once

#include <cstdint>

namespace plimsoll {

// `pixels` is the number of positions of one image. Source and destination must not overlap.
void to_channels_last(int64_t batch, int64_t channels, int64_t pixels, const float* from, float* to,
                      int threads);
void to_channels_first(int64_t batch, int64_t channels, int64_t pixels, const float* from, float* to,
                       int threads);

}  // namespace plimsoll
