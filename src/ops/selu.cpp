#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  unary_attrs(c);
  kernels::Unary* f = c.make<kernels::Unary>();
  // Before opset 6 the defaults had fewer digits.
  const bool old = c.opset() < 6;
  *f = {kernels::UnaryKind::kSelu, c.real("alpha", old ? 1.6732f : 1.67326319217681884765625f),
        c.real("gamma", old ? 1.0507f : 1.05070102214813232421875f)};
  return f;
}

void gradient(GradientContext& c) {
  const kernels::Unary& f = c.attrs<kernels::Unary>();
  const double scale = f.b;
  const Term x = f.a > 0 && f.b > 0 ? out(c) : in(c);
  c.set(0, (dy(c) * (x > 0.0).choose(x.number(scale), out(c) + scale * f.a)).edge());
}

}  // namespace

extern const OpDef op_selu = float_unary("Selu", attrs, gradient);

}  // namespace plimsoll
