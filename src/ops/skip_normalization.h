// SkipLayerNormalization, SkipSimplifiedLayerNormalization and SimplifiedLayerNormalization.
#pragma once

#include "graph/decompose.h"

namespace plimsoll {

struct SkipAttrs {
  float epsilon = 1e-12f;
};
const void* skip_attrs(AttrContext& c);

// Inputs behind input, skip and gamma; a position beyond all is none.
struct SkipInputs {
  size_t beta, bias;
};
void infer_skip(InferContext& c, const SkipInputs& at);
// input + skip + bias, which is output 3 where that is wanted.
Edge* write_skip_sum(DecomposeContext& c, const SkipInputs& at);

// Writes output `output`, RMSNormalization of x, and where `inverse` is wanted, 1 / sqrt(mean(x * x) +
// epsilon) in float, keeping the dimensions.
void write_rms(DecomposeContext& c, Edge* x, Edge* scale, int64_t axis, float epsilon, size_t inverse,
               size_t rank);

}  // namespace plimsoll
