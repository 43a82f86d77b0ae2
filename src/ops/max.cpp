#include "ops/elementwise.h"
#include "ops/variadic.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  infer_variadic(c);
  if (c.input_count() == 2) propagate(c, [](Dim a, Dim b) { return max(a, b); });
}

void run(const RunContext& c) {
  run_variadic(c, kernels::BinaryKind::kMax, [](auto a, auto b) {
    if (a != a) return a;  // NaN wins
    return a > b ? a : b;
  });
}

}  // namespace

extern const OpDef op_max = {
    .name = "Max",
    .inputs = {1, kAnyNumber},
    .attrs = unary_attrs,
    .infer = infer,
    .alias = alias_variadic,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_broadcasting,
    .region = region_broadcasting,
    .gradient = gradient_extreme,
};

}  // namespace plimsoll
