#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {

namespace {

void gradient(GradientContext& c) {
  const Term y = out(c);
  c.set(0, (dy(c) * (y * (1.0 - y))).edge());
}

}  // namespace

extern const OpDef op_sigmoid = float_unary<kernels::UnaryKind::kSigmoid>("Sigmoid", gradient);

}  // namespace plimsoll
