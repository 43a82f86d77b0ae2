#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {

namespace {

void gradient(GradientContext& c) {
  const Term x = in(c), t = x.unary("Softplus").unary("Tanh");
  c.set(0, (dy(c) * (t + x * x.unary("Sigmoid") * (1.0 - t * t))).edge());
}

}  // namespace

extern const OpDef op_mish = float_unary<kernels::UnaryKind::kMish>("Mish", gradient);

}  // namespace plimsoll
