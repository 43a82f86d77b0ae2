#include "graph/gradient.h"
#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_floor = float_unary<kernels::UnaryKind::kFloor>("Floor", no_gradient);

}  // namespace plimsoll
