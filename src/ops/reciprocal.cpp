#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {

namespace {

void gradient(GradientContext& c) {
  c.set(0, (-(dy(c) * (out(c) * out(c)))).edge());
}

}  // namespace

extern const OpDef op_reciprocal = float_unary<kernels::UnaryKind::kReciprocal>("Reciprocal", gradient);

}  // namespace plimsoll
