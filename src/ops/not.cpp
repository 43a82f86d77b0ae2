#include "graph/gradient.h"
#include "ops/elementwise.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  c.expect_type(0, kBoolType);
  set_output_like(c, 0, ElementType::kBool, 0);
}

void run(const RunContext& c) {
  map_elements<uint8_t, uint8_t>(c, [](uint8_t x) { return x == 0; });
}

}  // namespace

extern const OpDef op_not = {
    .name = "Not",
    .infer = infer,
    .alias = alias_unary,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_unary,
    .region = region_broadcasting,
    .gradient = no_gradient,
};

}  // namespace plimsoll
