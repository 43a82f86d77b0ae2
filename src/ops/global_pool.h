// One value per channel from all of its pixels, for what kernels/pool.h does not take.
#pragma once

#include "ops/pool_common.h"
#include "ops/reduce.h"

namespace plimsoll {

struct GlobalPool {
  int64_t batch = 0, channels = 0, pixels = 0;
  bool channels_last = false;
};

inline GlobalPool global_pool(const RunContext& c) {
  const WindowAttrs& w = c.attrs<PoolAttrs>().window;
  const TensorView& x = c.inputs[0];
  GlobalPool p{x.dims[0], x.dims[channel_axis(w, x.rank())], 1, w.channels_last};
  for (size_t i = 0; i + 2 < x.rank(); ++i) p.pixels *= x.dims[spatial_axis(w, i)];
  return p;
}

// What a channel without pixels gives.
template <typename T>
void fill_channels(const GlobalPool& p, T value, T* y) {
  for (int64_t i = 0; i < p.batch * p.channels; ++i) y[i] = value;
}

}  // namespace plimsoll
