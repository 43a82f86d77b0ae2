#include "graph/gradient.h"
#include "ops/elementwise.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  visit_numeric(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Number = ComputeType<T>;
    map_elements<T, T>(c, [](Number x) {
      if (x > 0) return Number{1};
      return x < 0 ? static_cast<Number>(-1) : x;  // zero and NaN stay
    });
  });
}

}  // namespace

extern const OpDef op_sign = {
    .name = "Sign",
    .infer = infer_numeric_unary,
    .alias = alias_unary,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_unary,
    .region = region_broadcasting,
    .gradient = no_gradient,
};

}  // namespace plimsoll
