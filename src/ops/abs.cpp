#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  if (is_float(c.inputs[0].type)) return run_unary(c, {kernels::UnaryKind::kAbs});
  visit_integer(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_elements<T, T>(c, [](T x) {
      return x < 0 ? WrapType<T>{0} - static_cast<WrapType<T>>(x) : static_cast<WrapType<T>>(x);
    });
  });
}

void gradient(GradientContext& c) {
  c.set(0, (dy(c) * in(c).unary("Sign")).edge());
}

}  // namespace

extern const OpDef op_abs = {
    .name = "Abs",
    .attrs = unary_attrs,
    .infer = infer_numeric_unary,
    .alias = alias_unary,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_unary,
    .region = region_broadcasting,
    .gradient = gradient,
};

}  // namespace plimsoll
