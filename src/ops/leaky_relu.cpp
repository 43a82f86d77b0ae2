#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  unary_attrs(c);
  kernels::Unary* f = c.make<kernels::Unary>();
  *f = {kernels::UnaryKind::kLeakyRelu, c.real("alpha", 0.01f)};
  return f;
}

void gradient(GradientContext& c) {
  const kernels::Unary& f = c.attrs<kernels::Unary>();
  // The output has the input's sign, unless the slope turns it.
  const Term is_up = (f.a > 0 ? out(c) : in(c)) > 0.0;
  c.set(0, (is_up.choose(dy(c), dy(c) * f.a)).edge());
}

}  // namespace

extern const OpDef op_leaky_relu = float_unary("LeakyRelu", attrs, gradient);

}  // namespace plimsoll
