#include "ops/variadic.h"

namespace plimsoll {

extern const OpDef op_sum = sum_operator<false>("Sum");

}  // namespace plimsoll
