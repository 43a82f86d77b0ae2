#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_softplus = float_unary<kernels::UnaryKind::kSoftplus>("Softplus");

}  // namespace plimsoll
