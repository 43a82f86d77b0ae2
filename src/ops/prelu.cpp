#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {
namespace {

// Before opset 7 a slope of one dimension belongs to axis 1.
const void* attrs(AttrContext& c) {
  unary_attrs(c);
  BinaryAttrs* a = c.make<BinaryAttrs>();
  if (c.opset() < 7) a->axis = 1;
  return a;
}

void infer(InferContext& c) {
  infer_binary(c, kNumericTypes);
}

void run(const RunContext& c) {
  if (is_float(c.inputs[0].type)) return run_float_binary(c, kernels::BinaryKind::kPrelu);
  visit_integer(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    run_binary<T, T>(c, [](auto x, auto slope) {
      return x < 0 ? static_cast<T>(static_cast<WrapType<T>>(x) * static_cast<WrapType<T>>(slope)) : x;
    });
  });
}

void gradient(GradientContext& c) {
  check_trailing_broadcast(c);
  const Term x = in(c), is_down = x < 0.0;
  if (c.wants(0)) c.set(0, is_down.choose(dy(c) * in(c, 1), dy(c)).edge());
  if (c.wants(1)) c.set_broadcast(1, only_where(is_down, dy(c) * x).edge());
}

}  // namespace

extern const OpDef op_prelu = {
    .name = "PRelu",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .alias = alias_elementwise,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_broadcasting,
    .region = region_broadcasting,
    .gradient = gradient,
};

}  // namespace plimsoll
