#include "ops/microsoft_decomposed.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  infer_like_first(c, kFloatTypes, {1});
  expect_last_dimension(c, 1);
}

void decompose(DecomposeContext& c) {
  c.op_into(0, "Gelu", {c.op("Add", {c.in(0), c.in(1)})});
}

}  // namespace

extern const OpDef op_microsoft_bias_gelu = {
    .domain = kMicrosoftDomain, .name = "BiasGelu", .inputs = {2, 2}, .infer = infer, .decompose = decompose};

}  // namespace plimsoll
