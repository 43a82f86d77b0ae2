#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_acos = float_unary<kernels::UnaryKind::kAcos>("Acos");

}  // namespace plimsoll
