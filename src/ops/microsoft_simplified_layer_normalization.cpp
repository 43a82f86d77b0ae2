#include "graph/op_def.h"

namespace plimsoll {

extern const OpDef op_simplified_layer_normalization;
extern const OpDef op_microsoft_simplified_layer_normalization = {
    .domain = kMicrosoftDomain,
    .name = "SimplifiedLayerNormalization",
    .same_as = &op_simplified_layer_normalization,
    .same_version = 1};

}  // namespace plimsoll
