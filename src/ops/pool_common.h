// Pooling: what MaxPool, AveragePool and the global forms share.
#pragma once

#include "kernels/pool.h"
#include "ops/window.h"

namespace plimsoll {

struct PoolAttrs {
  WindowAttrs window;
  bool ceil_mode = false;
  bool count_padding = false;  // AveragePool
  bool column_major = false;   // MaxPool: how indices count
};

// Windows: reads the attributes, and infers output 0 (and further outputs of type int64).
void read_pool(AttrContext& c, PoolAttrs& attrs);
void infer_pool(InferContext& c, TypeSet types);
void region_pool(RegionContext& c);
// The global forms: one element per channel.
void infer_global_pool(InferContext& c);
const void* read_global_pool(AttrContext& c);
void region_global_pool(RegionContext& c);

Window pool_window(const RunContext& c);
// Floats, channels-last, at most two spatial dimensions: kernels/pool.h takes it.
bool is_plane_pool(const TensorView& x, const Window& w);
kernels::PoolShape plane_shape(const Window& w);

// Calls f(image, channel, position in the output, offset of the output element) for all of them.
template <typename F>
void for_each_window(const Window& w, F&& f) {
  const SpatialStrides strides = strides_of(w.rank, w.channels, w.out, w.channels_last);
  int64_t windows = 1;
  for (size_t i = 0; i < w.rank; ++i) windows *= w.out[i];
  if (windows == 0) return;
  for (int64_t n = 0; n < w.batch; ++n) {
    for (int64_t c = 0; c < w.channels; ++c) {
      Spatial at{};
      do {
        int64_t offset = n * strides.batch + c * strides.channel;
        for (size_t i = 0; i < w.rank; ++i) offset += at[i] * strides.spatial[i];
        f(n, c, at, offset);
      } while (next_position(w.rank, w.out, at));
    }
  }
}

// Calls f(position in the input) for every element of the window at `at` that lies inside.
template <typename F>
void for_each_tap(const Window& w, const Spatial& at, F&& f) {
  Spatial first{}, count{}, tap{};
  for (size_t i = 0; i < w.rank; ++i) {
    const TapRange range = tap_range(w, i, at[i]);
    if (range.first == range.last) return;
    first[i] = range.first;
    count[i] = range.last - range.first;
  }
  do {
    Spatial in{};
    for (size_t i = 0; i < w.rank; ++i)
      in[i] = at[i] * w.stride[i] - w.begin[i] + (first[i] + tap[i]) * w.dilation[i];
    f(in);
  } while (next_position(w.rank, count, tap));
}

}  // namespace plimsoll
