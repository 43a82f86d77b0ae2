#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_sqrt = float_unary<kernels::UnaryKind::kSqrt>("Sqrt");

}  // namespace plimsoll
