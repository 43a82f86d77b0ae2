#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_tan = float_unary<kernels::UnaryKind::kTan>("Tan");

}  // namespace plimsoll
