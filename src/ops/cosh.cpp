#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_cosh = float_unary<kernels::UnaryKind::kCosh>("Cosh");

}  // namespace plimsoll
