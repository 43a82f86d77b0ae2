#include <cmath>

#include "graph/gradient.h"
#include "ops/elementwise.h"
#include "ops/float8_types.h"

namespace plimsoll {
namespace {

struct IsInfAttrs {
  bool negative = true, positive = true;
};

const void* attrs(AttrContext& c) {
  IsInfAttrs* a = c.make<IsInfAttrs>();
  a->negative = c.integer("detect_negative", 1) != 0;
  a->positive = c.integer("detect_positive", 1) != 0;
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, kFloatTypes | kFloat8Types);
  set_output_like(c, 0, ElementType::kBool, 0);
}

void run(const RunContext& c) {
  const IsInfAttrs a = c.attrs<IsInfAttrs>();
  const ElementType type = c.inputs[0].type;
  const auto is_sought = [=](auto x) { return std::isinf(x) && (x > 0 ? a.positive : a.negative); };
  if (kFloat8Types.contains(type))
    return map_elements<uint8_t, uint8_t>(
        c, [=](uint8_t bits) { return is_sought(decode_small_float(type, bits)); });
  visit_float(type, [&](auto tag) { map_elements<typename decltype(tag)::type, uint8_t>(c, is_sought); });
}

}  // namespace

extern const OpDef op_is_inf = {
    .name = "IsInf",
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_unary,
    .region = region_broadcasting,
    .gradient = no_gradient,
};

}  // namespace plimsoll
