#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_sin = float_unary<kernels::UnaryKind::kSin>("Sin");

}  // namespace plimsoll
