#include "ops/elementwise.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  c.expect_type(0, kIntegerTypes);
  set_output_like(c, 0, c.type(0), 0);
}

void run(const RunContext& c) {
  visit_integer(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_elements<T, T>(c, [](T x) { return static_cast<T>(~x); });
  });
}

}  // namespace

extern const OpDef op_bitwise_not = {
    .name = "BitwiseNot",
    .infer = infer,
    .alias = alias_unary,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_unary,
    .region = region_broadcasting,
};

}  // namespace plimsoll
