#include "graph/op_def.h"

namespace plimsoll {

extern const OpDef op_image_scaler;
// Without a bias.
extern const OpDef op_scale = {.name = "Scale", .same_as = &op_image_scaler, .same_version = 1};

}  // namespace plimsoll
