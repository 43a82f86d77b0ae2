#include "ops/reduce.h"

namespace plimsoll {

extern const OpDef op_reduce_prod = reduce_op<Reduction::kProd>("ReduceProd");

}  // namespace plimsoll
