#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_sinh = float_unary<kernels::UnaryKind::kSinh>("Sinh");

}  // namespace plimsoll
