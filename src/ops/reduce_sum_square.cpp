#include "ops/reduce.h"

namespace plimsoll {

extern const OpDef op_reduce_sum_square = reduce_op<Reduction::kSumSquare>("ReduceSumSquare");

}  // namespace plimsoll
