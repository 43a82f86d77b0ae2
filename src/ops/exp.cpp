#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {

namespace {

void gradient(GradientContext& c) {
  c.set(0, (dy(c) * out(c)).edge());
}

}  // namespace

extern const OpDef op_exp = float_unary<kernels::UnaryKind::kExp>("Exp", gradient);

}  // namespace plimsoll
