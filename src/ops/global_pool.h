// One value per channel from all of its pixels, for what kernels/pool.h does not take.
#pragma once

#include "kernels/parallel.h"
#include "ops/elementwise.h"
#include "ops/pool_common.h"

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

// y = finish(fold over a channel's pixels of join(accumulator, x)), started at `start`. Four chains, so that
// long sums stay accurate and fast.
template <typename T, typename A, typename Join, typename Finish>
void reduce_channels(const GlobalPool& p, A start, const T* x, T* y, int threads, Join join, Finish finish) {
  const int64_t step = p.channels_last ? p.channels : 1;
  kernels::parallel_for(threads, p.batch * p.channels, [&](int64_t i) {
    const T* from =
        x + (p.channels_last ? i / p.channels * p.channels * p.pixels + i % p.channels : i * p.pixels);
    A chains[4] = {start, start, start, start};
    int64_t k = 0;
    for (; k + 4 <= p.pixels; k += 4) {
      for (int j = 0; j < 4; ++j)
        chains[j] = join(chains[j], static_cast<A>(load_element(from[(k + j) * step])));
    }
    for (; k < p.pixels; ++k) chains[0] = join(chains[0], static_cast<A>(load_element(from[k * step])));
    y[i] = static_cast<T>(finish(join(join(chains[0], chains[1]), join(chains[2], chains[3]))));
  });
}

template <typename T>
using PoolAccumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;

}  // namespace plimsoll
