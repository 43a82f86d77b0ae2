#include "ops/microsoft_decomposed.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  infer_like_first(c, kFloatTypes, {1, 2});
  expect_last_dimension(c, 1);
  if (!c.ranked(0) || !c.ranked(2)) return;
  c.expect_rank(2, c.rank(0), c.rank(0));
  for (size_t i = 0; i < c.rank(0); ++i) {
    const Dim a = c.dims(0)[i], b = c.dims(2)[i];
    if (a.is_constant() && b.is_constant() && !(a == b))
      c.reject("skip of shape {} does not fit X of shape {}", to_string(c.dims(2)), to_string(c.dims(0)));
  }
}

void decompose(DecomposeContext& c) {
  c.op_into(0, "Add", {c.op("Add", {c.in(0), c.in(1)}), c.in(2)});
}

}  // namespace

extern const OpDef op_microsoft_bias_add = {
    .domain = kMicrosoftDomain, .name = "BiasAdd", .inputs = {3, 3}, .infer = infer, .decompose = decompose};

}  // namespace plimsoll
