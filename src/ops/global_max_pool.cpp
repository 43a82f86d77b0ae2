#include "graph/gradient.h"
#include "ops/global_pool.h"
#include "ops/layout.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  const GlobalPool p = global_pool(c);
  const TensorView &x = c.inputs[0], &y = c.outputs[0];
  if (!p.channels_last && p.pixels > 0)
    return reduce_rows(c, Reduction::kMax, p.batch * p.channels, p.pixels);
  visit_float(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels::max_pool(kernels::whole_image(p.batch, p.pixels, p.channels), x.as<T>(), y.as<T>(), c.threads);
  });
}

// The first of the largest elements made the output.
void gradient(GradientContext& c) {
  Edge* rows = c.build.integers({0, 0, -1});
  Edge* x = c.op("Reshape", {c.in(0), rows});
  Edge* where = c.op("ArgMax", {x}, c.attributes().set("axis", int64_t{2}));
  Edge* zeros = c.op("Expand", {c.scalar(0), c.shape_of(x)});
  Edge* dx = c.op("ScatterElements", {zeros, where, c.op("Reshape", {c.gradient(), rows})},
                  c.attributes().set("axis", int64_t{2}));
  c.set(0, c.op("Reshape", {dx, c.shape_of(c.in(0))}));
}

}  // namespace

extern const OpDef op_global_max_pool = {
    .name = "GlobalMaxPool",
    .attrs = read_global_pool,
    .infer = infer_global_pool,
    .run = run,
    .layout = layout_global_pool,
    .region = region_global_pool,
    .channels_last = true,
    .gradient = gradient,
};

}  // namespace plimsoll
