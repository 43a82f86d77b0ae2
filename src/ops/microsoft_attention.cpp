// A projection to Q, K and V in one, and attention.
#include "graph/decompose.h"
#include "ops/movement.h"
#include "ops/projected_attention.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kWeights = 1, kBias = 2, kMask = 3, kPast = 4, kAttentionBias = 5, kPastLength = 6;
constexpr ProjectedInputs kInputs{kMask, kPast, kAttentionBias, kPastLength};

const void* attrs(AttrContext& c) {
  auto* a = c.make<ProjectedAttrs>();
  read_projected(c, *a);
  if (c.integer("do_rotary", 0) != 0)
    fail(ErrorCode::kNotImplemented, "{}: do_rotary (there is RotaryEmbedding)", c.node().label());
  c.ignore("rotary_embedding_dim");
  return a;
}

void infer(InferContext& c) {
  c.expect_type(kX, kAttentionTypes);
  c.expect_same_type(kX, kWeights);
  c.expect_rank(kX, 3, 3);
  c.expect_rank(kWeights, 2, 2);
  if (c.has_input(kBias)) {
    c.expect_same_type(kX, kBias);
    c.expect_rank(kBias, 1, 1);
  }
  if (!c.ranked(kX) || !c.ranked(kWeights)) {
    for (size_t i = 0; i < c.output_count(); ++i) c.set_unranked_output(i, c.type(kX));
    return;
  }
  const auto x = c.dims(kX), w = c.dims(kWeights);
  unify(c, x[2], w[0]);
  if (c.has_input(kBias) && c.ranked(kBias)) unify(c, c.dims(kBias)[0], w[1]);
  infer_projected(c, c.attrs<ProjectedAttrs>(), kInputs, x[0], x[1], w[1]);
}

void decompose(DecomposeContext& c) {
  Edge* projected = c.op("MatMul", {c.in(kX), c.in(kWeights)});
  if (c.in(kBias) != nullptr) projected = c.op("Add", {projected, c.in(kBias)});
  AttributeList kept(c.build.graph().arena(), c.node());
  kept.erase("do_rotary").erase("rotary_embedding_dim");
  Edge* const inputs[] = {projected, c.in(kMask), c.in(kPast), c.in(kAttentionBias), c.in(kPastLength)};
  c.build.emit_into(c.node().outputs, kPlimsollDomain, "ProjectedAttention", inputs, kept.list());
}

}  // namespace

extern const OpDef op_microsoft_attention = {
    .domain = kMicrosoftDomain,
    .name = "Attention",
    .inputs = {2, 7},
    .outputs = {1, 2},
    .attrs = attrs,
    .infer = infer,
    .decompose = decompose,
};

}  // namespace plimsoll
