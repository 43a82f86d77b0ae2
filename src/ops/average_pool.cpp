#include "ops/layout.h"
#include "ops/pool_lines.h"

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

template <typename T>
struct Average {
  using A = kernels::LaneOf<T>;
  T* y;
  bool count_padding;
  A sums[kPoolBlock];

  void start(int64_t count) { std::fill_n(sums, count, A{0}); }
  void take(const PoolTaps<A>& t) {
    if (t.step == 1) {  // a loop of vectors
      for (int64_t i = t.first; i < t.last; ++i) sums[i] += t.x[i - t.first];
      return;
    }
    for (int64_t i = t.first; i < t.last; ++i) sums[i] += t.x[(i - t.first) * t.step];
  }
  void finish(int64_t i, const PoolCounts& counts, int64_t to) {
    const int64_t count = count_padding ? counts.padded : counts.inside;
    y[to] = static_cast<T>(count > 0 ? sums[i] / static_cast<A>(count) : sums[i]);
  }
};

void run(const RunContext& c) {
  const Window w = pool_window(c);
  const bool count_padding = c.attrs<PoolAttrs>().count_padding;
  const TensorView &x = c.inputs[0], &y = c.outputs[0];
  visit_float(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (const auto shape = plane_pool(x, w))
      return kernels::average_pool(*shape, count_padding, x.as<T>(), y.as<T>(), c.threads);
    pool_lines(w, x.as<T>(), Average<T>{y.as<T>(), count_padding, {}}, c.threads);
  });
}

void gradient(GradientContext& c) {
  gradient_pool(c, "average");
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
    .gradient = gradient,
};

}  // namespace plimsoll
