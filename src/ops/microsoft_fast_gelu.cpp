#include "ops/microsoft_decomposed.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  infer_like_first(c, kFloatTypes, {1});
  expect_last_dimension(c, 1);
}

void decompose(DecomposeContext& c) {
  Edge* x = c.in(1) == nullptr ? c.in(0) : c.op("Add", {c.in(0), c.in(1)});
  c.op_into(0, "Gelu", {x}, c.attributes().set("approximate", "tanh"));
}

}  // namespace

extern const OpDef op_microsoft_fast_gelu = {
    .domain = kMicrosoftDomain, .name = "FastGelu", .inputs = {1, 2}, .infer = infer, .decompose = decompose};

}  // namespace plimsoll
