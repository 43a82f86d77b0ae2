#include "ops/elementwise.h"

namespace plimsoll {

extern const OpDef op_asin = float_unary<kernels::UnaryKind::kAsin>("Asin");

}  // namespace plimsoll
