#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_exp = float_unary<kernels::UnaryKind::kExp>("Exp");

}  // namespace plimsoll
