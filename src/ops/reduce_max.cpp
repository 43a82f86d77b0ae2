#include "ops/reduce.h"

namespace plimsoll {

extern const OpDef op_reduce_max = reduce_op<Reduction::kMax>("ReduceMax");

}  // namespace plimsoll
