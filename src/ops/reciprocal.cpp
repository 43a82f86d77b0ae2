#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_reciprocal = float_unary<kernels::UnaryKind::kReciprocal>("Reciprocal");

}  // namespace plimsoll
