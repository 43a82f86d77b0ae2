#include "graph/gradient.h"
#include "ops/elementwise.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  run_comparison(c, [](auto a, auto b) { return a > b; });
}

}  // namespace

extern const OpDef op_greater = {
    .name = "Greater",
    .inputs = {2, 2},
    .attrs = binary_attrs,
    .infer = infer_comparison,
    .alias = alias_elementwise,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_broadcasting,
    .region = region_broadcasting,
    .gradient = no_gradient,
};

}  // namespace plimsoll
