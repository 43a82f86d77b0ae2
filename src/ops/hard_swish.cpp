#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {

namespace {

void gradient(GradientContext& c) {
  const Term x = in(c);
  c.set(0, (dy(c) * (x > 3.0).choose(x.number(1), only_where(x > -3.0, x / 3.0 + 0.5))).edge());
}

}  // namespace

extern const OpDef op_hard_swish = float_unary<kernels::UnaryKind::kHardSwish>("HardSwish", gradient);

}  // namespace plimsoll
