#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  kernels::Unary* f = c.make<kernels::Unary>();
  *f = {kernels::UnaryKind::kCelu, c.real("alpha", 1.0f)};
  if (f->a == 0) c.reject("attribute 'alpha': expected another number than 0, found 0");
  return f;
}

void gradient(GradientContext& c) {
  const kernels::Unary& f = c.attrs<kernels::Unary>();
  const Term x = f.a > 0 ? out(c) : in(c);
  c.set(0, ((x > 0.0).choose(dy(c), dy(c) * (out(c) / f.a + 1.0))).edge());
}

}  // namespace

extern const OpDef op_celu = float_unary("Celu", attrs, gradient);

}  // namespace plimsoll
