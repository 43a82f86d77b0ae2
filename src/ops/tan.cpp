#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {

namespace {

void gradient(GradientContext& c) {
  c.set(0, (dy(c) * (1.0 + out(c) * out(c))).edge());
}

}  // namespace

extern const OpDef op_tan = float_unary<kernels::UnaryKind::kTan>("Tan", gradient);

}  // namespace plimsoll
