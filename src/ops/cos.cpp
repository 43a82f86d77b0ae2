#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_cos = float_unary<kernels::UnaryKind::kCos>("Cos");

}  // namespace plimsoll
