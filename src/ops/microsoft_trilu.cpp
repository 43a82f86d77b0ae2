#include "graph/op_def.h"

namespace plimsoll {

extern const OpDef op_trilu;
extern const OpDef op_microsoft_trilu = {
    .domain = kMicrosoftDomain, .name = "Trilu", .same_as = &op_trilu, .same_version = 14};

}  // namespace plimsoll
