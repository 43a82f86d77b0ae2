#include "ops/reduce.h"

namespace plimsoll {

extern const OpDef op_reduce_min = reduce_op<Reduction::kMin>("ReduceMin");

}  // namespace plimsoll
