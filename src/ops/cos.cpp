#include <cmath>

#include "ops/elementwise.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_elements<T, T>(c, [](ComputeType<T> x) { return std::cos(x); });
  });
}

}  // namespace

extern const OpDef op_cos = {
    .name = "Cos",
    .infer = infer_float_unary,
    .alias = alias_unary,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_unary,
    .region = region_broadcasting,
};

}  // namespace plimsoll
