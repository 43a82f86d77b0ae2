#include "graph/op_def.h"

namespace plimsoll {

extern const OpDef op_gelu;
extern const OpDef op_microsoft_gelu = {
    .domain = kMicrosoftDomain, .name = "Gelu", .same_as = &op_gelu, .same_version = 20};

}  // namespace plimsoll
