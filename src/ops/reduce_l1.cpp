#include "ops/reduce.h"

namespace plimsoll {

extern const OpDef op_reduce_l1 = reduce_op<Reduction::kL1>("ReduceL1");

}  // namespace plimsoll
