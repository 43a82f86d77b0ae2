#include "ops/reduce.h"

namespace plimsoll {

extern const OpDef op_reduce_l2 = reduce_op<Reduction::kL2>("ReduceL2");

}  // namespace plimsoll
