#include "graph/op_def.h"

namespace plimsoll {

extern const OpDef op_slice;
// Its name before its bounds were inputs.
extern const OpDef op_dynamic_slice = {.name = "DynamicSlice", .same_as = &op_slice, .same_version = 10};

}  // namespace plimsoll
