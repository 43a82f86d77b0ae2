#include "ops/elementwise.h"
#include "ops/unary_gradient.h"

namespace plimsoll {

extern const OpDef op_tanh =
    float_unary<kernels::UnaryKind::kTanh>("Tanh", unary_gradient<kernels::UnaryKind::kTanh>);

}  // namespace plimsoll
