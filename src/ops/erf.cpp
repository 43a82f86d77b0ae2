#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_erf = float_unary<kernels::UnaryKind::kErf>("Erf");

}  // namespace plimsoll
