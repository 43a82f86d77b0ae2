#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {

namespace {

void gradient(GradientContext& c) {
  c.set(0, (-(dy(c) * in(c).unary("Sin"))).edge());
}

}  // namespace

extern const OpDef op_cos = float_unary<kernels::UnaryKind::kCos>("Cos", gradient);

}  // namespace plimsoll
