#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_atanh = float_unary<kernels::UnaryKind::kAtanh>("Atanh");

}  // namespace plimsoll
