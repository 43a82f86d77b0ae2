#include "ops/elementwise.h"

namespace plimsoll {
namespace {

constexpr OpDef fused_unary() {
  OpDef op = float_unary<kernels::UnaryKind::kSilu>("Silu");
  op.domain = kPlimsollDomain;
  return op;
}

}  // namespace

// x * sigmoid(x), which passes make of Mul and Sigmoid.
extern const OpDef op_silu = fused_unary();

}  // namespace plimsoll
