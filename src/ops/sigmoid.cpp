#include "ops/elementwise.h"
#include "ops/unary_gradient.h"

namespace plimsoll {

extern const OpDef op_sigmoid =
    float_unary<kernels::UnaryKind::kSigmoid>("Sigmoid", unary_gradient<kernels::UnaryKind::kSigmoid>);

}  // namespace plimsoll
