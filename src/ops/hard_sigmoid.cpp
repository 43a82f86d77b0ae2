#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  unary_attrs(c);
  kernels::Unary* f = c.make<kernels::Unary>();
  *f = {kernels::UnaryKind::kHardSigmoid, c.real("alpha", 0.2f), c.real("beta", 0.5f)};
  return f;
}

void gradient(GradientContext& c) {
  const Term y = out(c);
  c.set(0, (only_where(y > 0.0 && y < 1.0, dy(c) * c.attrs<kernels::Unary>().a)).edge());
}

}  // namespace

extern const OpDef op_hard_sigmoid = float_unary("HardSigmoid", attrs, gradient);

}  // namespace plimsoll
