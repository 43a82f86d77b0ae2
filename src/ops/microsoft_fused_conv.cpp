#include "graph/op_def.h"

namespace plimsoll {

// It has no input for a factor per channel, and otherwise means what ours means.
extern const OpDef op_fused_conv;
extern const OpDef op_microsoft_fused_conv = {
    .domain = kMicrosoftDomain, .name = "FusedConv", .same_as = &op_fused_conv, .same_version = 1};

}  // namespace plimsoll
