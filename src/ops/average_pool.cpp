#include "ops/layout.h"
#include "ops/pool_common.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  auto* a = c.make<PoolAttrs>();
  read_pool(c, *a);
  a->count_padding = c.integer("count_include_pad", 0) != 0;
  return a;
}

void infer(InferContext& c) {
  infer_pool(c, kFloatTypes);
}

// Elements of the window inside the padded input.
int64_t padded_count(const Window& w, const Spatial& at) {
  int64_t count = 1;
  for (size_t i = 0; i < w.rank; ++i) {
    const int64_t start = at[i] * w.stride[i] - w.begin[i];
    count *= std::min(w.kernel[i], ceil_div(w.in[i] + w.end[i] - start, w.dilation[i]));
  }
  return count;
}

template <typename T>
void average_pool_any(const Window& w, bool count_padding, const T* x, T* y) {
  using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const SpatialStrides in = strides_of(w.rank, w.channels, w.in, w.channels_last);
  for_each_window(w, [&](int64_t n, int64_t c, const Spatial& at, int64_t to) {
    Accumulator sum = 0;
    int64_t count = 0;
    for_each_tap(w, at, [&](const Spatial& from) {
      int64_t offset = n * in.batch + c * in.channel;
      for (size_t i = 0; i < w.rank; ++i) offset += from[i] * in.spatial[i];
      sum += static_cast<Accumulator>(x[offset]);
      ++count;
    });
    if (count_padding) count = padded_count(w, at);
    y[to] = static_cast<T>(count > 0 ? sum / static_cast<Accumulator>(count) : sum);
  });
}

void run(const RunContext& c) {
  const Window w = pool_window(c);
  const bool count_padding = c.attrs<PoolAttrs>().count_padding;
  const TensorView &x = c.inputs[0], &y = c.outputs[0];
  visit_float(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (is_plane_pool(x, w))
      return kernels::average_pool(plane_shape(w), count_padding, x.as<T>(), y.as<T>(), c.threads);
    average_pool_any<T>(w, count_padding, x.as<T>(), y.as<T>());
  });
}

}  // namespace

extern const OpDef op_average_pool = {
    .name = "AveragePool",
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .layout = layout_windowed,
    .region = region_pool,
    .channels_last = true,
};

}  // namespace plimsoll
