#include "ops/elementwise.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  infer_binary(c, kNumericTypes);
  propagate(c, [](Dim a, Dim b) { return a + b; });
}

void run(const RunContext& c) {
  if (c.inputs[0].type == ElementType::kFloat) return run_binary_f32(c, kernels::BinaryKind::kAdd);
  visit_numeric(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    run_binary<T, T>(c, [](auto a, auto b) {
      if constexpr (std::is_integral_v<T>)
        return static_cast<WrapType<T>>(a) + static_cast<WrapType<T>>(b);
      else
        return a + b;
    });
  });
}

}  // namespace

extern const OpDef op_add = {
    .name = "Add",
    .inputs = {2, 2},
    .attrs = binary_attrs,
    .infer = infer,
    .alias = alias_elementwise,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_broadcasting,
    .region = region_broadcasting,
};

}  // namespace plimsoll
