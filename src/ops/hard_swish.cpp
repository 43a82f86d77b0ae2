#include "ops/elementwise.h"
#include "ops/unary_gradient.h"

namespace plimsoll {

extern const OpDef op_hard_swish =
    float_unary<kernels::UnaryKind::kHardSwish>("HardSwish", unary_gradient<kernels::UnaryKind::kHardSwish>);

}  // namespace plimsoll
