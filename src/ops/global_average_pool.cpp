#include "ops/global_pool.h"
#include "ops/layout.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  const GlobalPool p = global_pool(c);
  const TensorView &x = c.inputs[0], &y = c.outputs[0];
  visit_float(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (p.channels_last)
      return kernels::average_pool(kernels::whole_image(p.batch, p.pixels, p.channels), false, x.as<T>(),
                                   y.as<T>(), c.threads);
    using A = PoolAccumulator<T>;
    reduce_channels<T, A>(
        p, 0, x.as<T>(), y.as<T>(), c.threads, [](A a, A b) { return a + b; },
        [&](A sum) { return sum / static_cast<A>(p.pixels); });
  });
}

}  // namespace

extern const OpDef op_global_average_pool = {
    .name = "GlobalAveragePool",
    .attrs = read_global_pool,
    .infer = infer_global_pool,
    .run = run,
    .layout = layout_global_pool,
    .region = region_global_pool,
    .channels_last = true,
};

}  // namespace plimsoll
