#include "graph/op_def.h"

namespace plimsoll {

extern const OpDef op_microsoft_fused_matmul;
// The older name.
extern const OpDef op_microsoft_transpose_matmul = {.domain = kMicrosoftDomain,
                                                    .name = "TransposeMatMul",
                                                    .same_as = &op_microsoft_fused_matmul,
                                                    .same_version = 1};

}  // namespace plimsoll
