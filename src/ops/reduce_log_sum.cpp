#include "ops/reduce.h"

namespace plimsoll {

extern const OpDef op_reduce_log_sum = reduce_op<Reduction::kLogSum>("ReduceLogSum");

}  // namespace plimsoll
