#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  infer_binary(c, kNumericTypes);
  propagate(c, [](Dim a, Dim b) { return a - b; });
}

void run(const RunContext& c) {
  if (is_float(c.inputs[0].type)) return run_float_binary(c, kernels::BinaryKind::kSub);
  visit_integer(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    run_binary<T, T>(
        c, [](auto a, auto b) { return static_cast<WrapType<T>>(a) - static_cast<WrapType<T>>(b); });
  });
}

void gradient(GradientContext& c) {
  check_trailing_broadcast(c);
  if (c.wants(0)) c.set_broadcast(0, c.gradient());
  if (c.wants(1)) c.set_broadcast(1, (-dy(c)).edge());
}

}  // namespace

extern const OpDef op_sub = {
    .name = "Sub",
    .inputs = {2, 2},
    .attrs = binary_attrs,
    .infer = infer,
    .alias = alias_elementwise,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_broadcasting,
    .region = region_broadcasting,
    .gradient = gradient,
};

}  // namespace plimsoll
