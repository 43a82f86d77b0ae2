#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  if (is_float(c.inputs[0].type)) return run_unary(c, {kernels::UnaryKind::kRelu});
  visit_integer(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_elements<T, T>(c, [](T x) { return x < 0 ? T{0} : x; });
  });
}

void gradient(GradientContext& c) {
  c.set(0, only_where(out(c) > 0.0, dy(c)).edge());
}

}  // namespace

extern const OpDef op_relu = {
    .name = "Relu",
    .attrs = unary_attrs,
    .infer = infer_numeric_unary,
    .alias = alias_unary,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_unary,
    .region = region_broadcasting,
    .gradient = gradient,
};

}  // namespace plimsoll
