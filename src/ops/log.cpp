#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_log = float_unary<kernels::UnaryKind::kLog>("Log");

}  // namespace plimsoll
