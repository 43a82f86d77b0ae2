#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {

namespace {

void gradient(GradientContext& c) {
  const Term y = out(c);
  c.set(0, (dy(c) * (1.0 - y * y)).edge());
}

}  // namespace

extern const OpDef op_tanh = float_unary<kernels::UnaryKind::kTanh>("Tanh", gradient);

}  // namespace plimsoll
