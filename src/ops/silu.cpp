#include "ops/elementwise.h"
#include "ops/unary_gradient.h"

namespace plimsoll {
namespace {

void gradient(GradientContext& c) {
  set_unary_gradient(c, {kernels::UnaryKind::kSwish, 1});
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
