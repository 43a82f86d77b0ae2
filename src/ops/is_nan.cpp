#include <cmath>

#include "graph/gradient.h"
#include "ops/elementwise.h"
#include "ops/float8_types.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  c.expect_type(0, kFloatTypes | kFloat8Types);
  set_output_like(c, 0, ElementType::kBool, 0);
}

void run(const RunContext& c) {
  const ElementType type = c.inputs[0].type;
  if (kFloat8Types.contains(type))
    return map_elements<uint8_t, uint8_t>(
        c, [=](uint8_t bits) { return std::isnan(decode_small_float(type, bits)); });
  visit_float(type, [&](auto tag) {
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
    .gradient = no_gradient,
};

}  // namespace plimsoll
