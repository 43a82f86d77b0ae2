#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {

namespace {

void gradient(GradientContext& c) {
  c.set(0, (dy(c) * in(c).unary("Cosh")).edge());
}

}  // namespace

extern const OpDef op_sinh = float_unary<kernels::UnaryKind::kSinh>("Sinh", gradient);

}  // namespace plimsoll
