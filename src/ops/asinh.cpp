#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_asinh = float_unary<kernels::UnaryKind::kAsinh>("Asinh");

}  // namespace plimsoll
