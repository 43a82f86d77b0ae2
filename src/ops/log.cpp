#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {

namespace {

void gradient(GradientContext& c) {
  c.set(0, (dy(c) / in(c)).edge());
}

}  // namespace

extern const OpDef op_log = float_unary<kernels::UnaryKind::kLog>("Log", gradient);

}  // namespace plimsoll
