#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  kernels::Unary* f = c.make<kernels::Unary>();
  *f = {kernels::UnaryKind::kSwish, c.real("alpha", 1.0f)};
  return f;
}

void gradient(GradientContext& c) {
  const float alpha = c.attrs<kernels::Unary>().a;
  const Term scaled = alpha == 1 ? in(c) : in(c)*alpha, s = scaled.unary("Sigmoid");
  c.set(0, (dy(c) * (s * (1.0 + scaled * (1.0 - s)))).edge());
}

}  // namespace

extern const OpDef op_swish = float_unary("Swish", attrs, gradient);

}  // namespace plimsoll
