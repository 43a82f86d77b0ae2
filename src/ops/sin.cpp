#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {

namespace {

void gradient(GradientContext& c) {
  c.set(0, (dy(c) * in(c).unary("Cos")).edge());
}

}  // namespace

extern const OpDef op_sin = float_unary<kernels::UnaryKind::kSin>("Sin", gradient);

}  // namespace plimsoll
