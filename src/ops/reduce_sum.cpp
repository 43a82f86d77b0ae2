#include "ops/reduce.h"

namespace plimsoll {

extern const OpDef op_reduce_sum = reduce_op<Reduction::kSum>("ReduceSum");

}  // namespace plimsoll
