#include <cmath>

#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

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

void gradient(GradientContext& c) {
  constexpr double kScale = 1.1283791670955126;  // 2 / sqrt(pi)
  const Term x = in(c);
  c.set(0, (dy(c) * ((-(x * x)).unary("Exp") * kScale)).edge());
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
    .gradient = gradient,
};

}  // namespace plimsoll
