#include "graph/gradient.h"
#include "ops/elementwise.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  infer_binary(c, kNumericTypes);
  propagate(c, [](Dim a, Dim b) { return a * b; });
}

void run(const RunContext& c) {
  if (is_float(c.inputs[0].type)) return run_float_binary(c, kernels::BinaryKind::kMul);
  visit_integer(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    run_binary<T, T>(
        c, [](auto a, auto b) { return static_cast<WrapType<T>>(a) * static_cast<WrapType<T>>(b); });
  });
}

void gradient(GradientContext& c) {
  check_trailing_broadcast(c);
  for (size_t i = 0; i < 2; ++i) {
    if (c.wants(i)) c.set_broadcast(i, c.op("Mul", {c.gradient(), c.in(1 - i)}));
  }
}

}  // namespace

extern const OpDef op_mul = {
    .name = "Mul",
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
