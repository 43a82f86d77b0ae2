#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {

namespace {

void gradient(GradientContext& c) {
  c.set(0, (dy(c) * in(c).unary("Sinh")).edge());
}

}  // namespace

extern const OpDef op_cosh = float_unary<kernels::UnaryKind::kCosh>("Cosh", gradient);

}  // namespace plimsoll
