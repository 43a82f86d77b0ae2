#include "graph/gradient.h"
#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_round = float_unary<kernels::UnaryKind::kRound>("Round", no_gradient);

}  // namespace plimsoll
