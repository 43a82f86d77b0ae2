#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_atan = float_unary<kernels::UnaryKind::kAtan>("Atan");

}  // namespace plimsoll
