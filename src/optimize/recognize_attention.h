#pragma once

#include "optimize/pipeline.h"

namespace plimsoll {

// softmax(scale * Q K' + mask) V in products that fuse_matmul and fuse_matmul_transposes have seen, masks as
// Add and Where: FusedAttention, which has the scores of a few queries in memory instead of all of them.
bool recognize_attention(Graph& root, const OptimizeOptions& options);

}  // namespace plimsoll
