#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_acosh = float_unary<kernels::UnaryKind::kAcosh>("Acosh");

}  // namespace plimsoll
