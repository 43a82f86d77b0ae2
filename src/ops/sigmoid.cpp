#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_sigmoid = float_unary<kernels::UnaryKind::kSigmoid>("Sigmoid");

}  // namespace plimsoll
