#include "ops/reduce.h"

namespace plimsoll {

extern const OpDef op_reduce_log_sum_exp = reduce_op<Reduction::kLogSumExp>("ReduceLogSumExp");

}  // namespace plimsoll
