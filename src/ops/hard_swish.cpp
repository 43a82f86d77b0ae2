#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_hard_swish = float_unary<kernels::UnaryKind::kHardSwish>("HardSwish");

}  // namespace plimsoll
