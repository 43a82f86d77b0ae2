#include "ops/skip_normalization.h"

namespace plimsoll {
namespace {

constexpr size_t kNone = 1u << 20, kMean = 1, kInverse = 2;
constexpr SkipInputs kInputs{kNone, 3};

void infer(InferContext& c) {
  if (c.has_output(kMean)) c.reject("output 1 (mean): nothing is subtracted");
  infer_skip(c, kInputs);
}

void decompose(DecomposeContext& c) {
  write_rms(c, write_skip_sum(c, kInputs), c.in(2), -1, c.attrs<SkipAttrs>().epsilon, kInverse, 0);
}

}  // namespace

extern const OpDef op_microsoft_skip_simplified_layer_normalization = {
    .domain = kMicrosoftDomain,
    .name = "SkipSimplifiedLayerNormalization",
    .inputs = {3, 4},
    .outputs = {1, 4},
    .attrs = skip_attrs,
    .infer = infer,
    .decompose = decompose};

}  // namespace plimsoll
