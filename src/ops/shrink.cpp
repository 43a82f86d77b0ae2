#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  kernels::Unary* f = c.make<kernels::Unary>();
  *f = {kernels::UnaryKind::kShrink, c.real("lambd", 0.5f), c.real("bias", 0.0f)};
  return f;
}

void run(const RunContext& c) {
  const kernels::Unary& f = c.attrs<kernels::Unary>();
  if (is_float(c.inputs[0].type)) return run_unary(c, f);
  const double lambda = f.a, bias = f.b;
  visit_integer(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_elements<T, T>(c, [=](T element) {
      const auto x = static_cast<double>(element);
      if (x < -lambda) return cast_to_integer<T>(x + bias);
      return x > lambda ? cast_to_integer<T>(x - bias) : T{0};
    });
  });
}

void gradient(GradientContext& c) {
  c.set(0, (only_where(in(c).unary("Abs") > c.attrs<kernels::Unary>().a, dy(c))).edge());
}

}  // namespace

extern const OpDef op_shrink = {
    .name = "Shrink",
    .attrs = attrs,
    .infer = infer_numeric_unary,
    .alias = alias_unary,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_unary,
    .region = region_broadcasting,
    .gradient = gradient,
};

}  // namespace plimsoll
