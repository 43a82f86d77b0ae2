#include "ops/reduce.h"

namespace plimsoll {

extern const OpDef op_reduce_mean = reduce_op<Reduction::kMean>("ReduceMean");

}  // namespace plimsoll
