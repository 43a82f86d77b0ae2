#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_tanh = float_unary<kernels::UnaryKind::kTanh>("Tanh");

}  // namespace plimsoll
