#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {

namespace {

void gradient(GradientContext& c) {
  c.set(0, (dy(c) * in(c).unary("Sigmoid")).edge());
}

}  // namespace

extern const OpDef op_softplus = float_unary<kernels::UnaryKind::kSoftplus>("Softplus", gradient);

}  // namespace plimsoll
