#include <cmath>

#include "ops/elementwise.h"
#include "ops/unary_gradient.h"

namespace plimsoll {
namespace {

// Until opset 12 integers too, whose results are cut to -1, 0 and 1.
void infer(InferContext& c) {
  c.expect_type(0, c.opset() < 13 ? kNumericTypes : kFloatTypes);
  set_output_like(c, 0, c.type(0), 0);
}

void run(const RunContext& c) {
  if (is_float(c.inputs[0].type)) return run_unary(c, {kernels::UnaryKind::kErf});
  visit_integer(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_elements<T, T>(c, [](T x) { return static_cast<T>(std::erf(static_cast<double>(x))); });
  });
}

}  // namespace

extern const OpDef op_erf = {
    .name = "Erf",
    .attrs = unary_attrs,
    .infer = infer,
    .alias = alias_unary,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_unary,
    .region = region_broadcasting,
    .gradient = unary_gradient<kernels::UnaryKind::kErf>,
};

}  // namespace plimsoll
