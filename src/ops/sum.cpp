#include "ops/variadic.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  run_sum(c, false);
}

}  // namespace

extern const OpDef op_sum = {
    .name = "Sum",
    .inputs = {1, kAnyNumber},
    .attrs = unary_attrs,
    .infer = infer_sum,
    .alias = alias_variadic,
    .select = select_sum,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_broadcasting,
    .region = region_broadcasting,
};

}  // namespace plimsoll
