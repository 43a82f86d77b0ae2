// X + Y * gate, with one gate per row.
#include "ops/microsoft_decomposed.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kY = 1, kGate = 2;

void infer(InferContext& c) {
  infer_like_first(c, kFloatTypes, {kY, kGate});
  for (size_t i : {kY, kGate}) {
    if (!c.ranked(kX) || !c.ranked(i)) continue;
    c.expect_rank(i, c.rank(kX), c.rank(kX));
    for (size_t d = 0; d < c.rank(kX); ++d)
      unify(c, i == kGate && d + 1 == c.rank(kX) ? Dim(1) : c.dims(kX)[d], c.dims(i)[d]);
  }
}

void decompose(DecomposeContext& c) {
  c.op_into(0, "Add", {c.in(kX), c.op("Mul", {c.in(kY), c.in(kGate)})});
}

}  // namespace

extern const OpDef op_microsoft_gated_add = {
    .domain = kMicrosoftDomain, .name = "GatedAdd", .inputs = {3, 3}, .infer = infer, .decompose = decompose};

}  // namespace plimsoll
