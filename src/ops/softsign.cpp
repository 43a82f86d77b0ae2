#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {

namespace {

void gradient(GradientContext& c) {
  const Term left = 1.0 - out(c).unary("Abs");  // 1 / (1 + |x|)
  c.set(0, (dy(c) * (left * left)).edge());
}

}  // namespace

extern const OpDef op_softsign = float_unary<kernels::UnaryKind::kSoftsign>("Softsign", gradient);

}  // namespace plimsoll
