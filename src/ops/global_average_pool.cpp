#include <limits>

#include "graph/gradient.h"
#include "ops/global_pool.h"
#include "ops/layout.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  const GlobalPool p = global_pool(c);
  const TensorView &x = c.inputs[0], &y = c.outputs[0];
  if (!p.channels_last && p.pixels > 0)
    return reduce_rows(c, Reduction::kMean, p.batch * p.channels, p.pixels);
  visit_float(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (p.pixels == 0) return fill_channels(p, T(std::numeric_limits<float>::quiet_NaN()), y.as<T>());
    kernels::average_pool(kernels::whole_image(p.batch, p.pixels, p.channels), false, x.as<T>(), y.as<T>(),
                          c.threads);
  });
}

void gradient(GradientContext& c) {
  if (!c.ranked(0)) c.reject("its gradient needs the rank of its input");
  Edge* share = c.op("Div", {c.gradient(), pooled_elements(c)});
  c.set(0, c.op("Expand", {share, c.shape_of(c.in(0))}));
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
    .gradient = gradient,
};

}  // namespace plimsoll
