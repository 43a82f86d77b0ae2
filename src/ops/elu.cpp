#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  unary_attrs(c);
  kernels::Unary* f = c.make<kernels::Unary>();
  *f = {kernels::UnaryKind::kElu, c.real("alpha", 1.0f)};
  return f;
}

void gradient(GradientContext& c) {
  const kernels::Unary& f = c.attrs<kernels::Unary>();
  const Term x = f.a > 0 ? out(c) : in(c);
  c.set(0, ((x > 0.0).choose(dy(c), dy(c) * (out(c) + f.a))).edge());
}

}  // namespace

extern const OpDef op_elu = float_unary("Elu", attrs, gradient);

}  // namespace plimsoll
