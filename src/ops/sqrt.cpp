#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {

namespace {

void gradient(GradientContext& c) {
  c.set(0, (dy(c) * 0.5 / out(c)).edge());
}

}  // namespace

extern const OpDef op_sqrt = float_unary<kernels::UnaryKind::kSqrt>("Sqrt", gradient);

}  // namespace plimsoll
