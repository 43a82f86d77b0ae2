#include "graph/op_def.h"

namespace plimsoll {

extern const OpDef op_microsoft_nhwc_conv;
// With an activation and an addend, which NhwcConv takes too.
extern const OpDef op_microsoft_nhwc_fused_conv = {.domain = kMicrosoftDomain,
                                                   .name = "NhwcFusedConv",
                                                   .same_as = &op_microsoft_nhwc_conv,
                                                   .same_version = 1};

}  // namespace plimsoll
