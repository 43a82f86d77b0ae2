#include "ops/variadic.h"

namespace plimsoll {

extern const OpDef op_mean = sum_operator<true>("Mean");

}  // namespace plimsoll
