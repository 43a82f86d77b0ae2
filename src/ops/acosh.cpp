#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {

namespace {

void gradient(GradientContext& c) {
  c.set(0, (dy(c) / (in(c)*in(c)-1.0).unary("Sqrt")).edge());
}

}  // namespace

extern const OpDef op_acosh = float_unary<kernels::UnaryKind::kAcosh>("Acosh", gradient);

}  // namespace plimsoll
