#include "graph/gradient.h"
#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_ceil = float_unary<kernels::UnaryKind::kCeil>("Ceil", no_gradient);

}  // namespace plimsoll
