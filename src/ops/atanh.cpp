#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {

namespace {

void gradient(GradientContext& c) {
  c.set(0, (dy(c) / (1.0 - in(c)*in(c))).edge());
}

}  // namespace

extern const OpDef op_atanh = float_unary<kernels::UnaryKind::kAtanh>("Atanh", gradient);

}  // namespace plimsoll
