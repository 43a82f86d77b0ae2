#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_mish = float_unary<kernels::UnaryKind::kMish>("Mish");

}  // namespace plimsoll
