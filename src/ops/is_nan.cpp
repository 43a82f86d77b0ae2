#include "ops/elementwise.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  c.expect_type(0, kFloatTypes);
  set_output_like(c, 0, ElementType::kBool, 0);
}

void run(const RunContext& c) {
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_elements<T, uint8_t>(c, [](ComputeType<T> x) { return x != x; });
  });
}

}  // namespace

extern const OpDef op_is_nan = {
    .name = "IsNaN",
    .infer = infer,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_unary,
    .region = region_broadcasting,
};

}  // namespace plimsoll
