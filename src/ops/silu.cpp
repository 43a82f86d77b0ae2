#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {
namespace {

void gradient(GradientContext& c) {
  const Term x = in(c), s = x.unary("Sigmoid");
  c.set(0, (dy(c) * (s * (1.0 + x * (1.0 - s)))).edge());
}

constexpr OpDef fused_unary() {
  OpDef op = float_unary<kernels::UnaryKind::kSilu>("Silu", gradient);
  op.domain = kPlimsollDomain;
  return op;
}

}  // namespace

// x * sigmoid(x), which passes make of Mul and Sigmoid.
extern const OpDef op_silu = fused_unary();

}  // namespace plimsoll
