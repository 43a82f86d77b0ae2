#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_softsign = float_unary<kernels::UnaryKind::kSoftsign>("Softsign");

}  // namespace plimsoll
