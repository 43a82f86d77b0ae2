#include "ops/microsoft_decomposed.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr size_t kIds = 0, kSegmentIds = 1, kWords = 2, kPositions = 3, kSegments = 4, kGamma = 5, kBeta = 6,
                 kMask = 7, kPositionIds = 8;

struct EmbedAttrs {
  float epsilon = 1e-12f;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<EmbedAttrs>();
  a->epsilon = c.real("epsilon", 1e-12f);
  c.ignore("mask_index_type");
  return a;
}

void expect_table(const InferContext& c, size_t i, Dim width) {
  if (!c.has_input(i)) return;
  c.expect_same_type(kWords, i);
  const size_t rank = i == kGamma || i == kBeta ? 1 : 2;
  c.expect_rank(i, rank, rank);
  if (c.ranked(i)) unify(c, c.dims(i).back(), width);
}

void infer(InferContext& c) {
  c.expect_type(kWords, kFloatTypes);
  c.expect_rank(kWords, 2, 2);
  c.expect_rank(kIds, 2, 2);
  for (size_t i : {kIds, kSegmentIds, kMask, kPositionIds}) {
    if (!c.has_input(i)) continue;
    c.expect_type(i, types(ElementType::kInt32));
    c.expect_rank(i, 2, 2);
    if (!c.ranked(i) || !c.ranked(kIds)) continue;
    unify(c, c.dims(i)[1], c.dims(kIds)[1]);
    if (i != kPositionIds || !(c.dims(i)[0] == Dim(1))) unify(c, c.dims(i)[0], c.dims(kIds)[0]);
  }
  const Dim width = c.ranked(kWords) ? c.dims(kWords)[1] : c.unknown("hidden");
  for (size_t i : {kPositions, kSegments, kGamma, kBeta}) expect_table(c, i, width);
  if (c.has_input(kSegmentIds) && !c.has_input(kSegments)) c.reject("segment_ids without segment_embedding");
  if (!c.ranked(kIds)) {
    for (size_t i : {size_t{0}, size_t{2}}) c.set_unranked_output(i, c.type(kWords));
    return c.set_unranked_output(1, ElementType::kInt32);
  }
  const auto ids = c.dims(kIds);
  if (!c.has_input(kPositionIds) && c.ranked(kPositions)) {
    const Dim rows = c.dims(kPositions)[0];
    if (rows.is_constant() && ids[1].is_constant() && rows.value() < ids[1].value())
      c.reject("{} positions are too few for a sequence of {}", rows.value(), ids[1].value());
  }
  c.set_output(0, c.type(kWords), std::vector<Dim>{ids[0], ids[1], width});
  c.set_output(1, ElementType::kInt32, std::vector<Dim>{ids[0]});
  c.set_output(2, c.type(kWords), std::vector<Dim>{ids[0], ids[1], width});
}

Edge* write_positions(DecomposeContext& c) {
  if (c.in(kPositionIds) != nullptr) return c.op("Gather", {c.in(kPositions), c.in(kPositionIds)});
  Edge* length = c.op("Shape", {c.in(kIds)}, c.attributes().set("start", int64_t{1}).set("end", int64_t{2}));
  return c.op("Slice", {c.in(kPositions), c.build.integers({0}), length, c.build.integers({0})});
}

// Without ids, all are of the first segment.
Edge* write_segments(DecomposeContext& c) {
  if (c.in(kSegmentIds) != nullptr) return c.op("Gather", {c.in(kSegments), c.in(kSegmentIds)});
  return c.op("Slice",
              {c.in(kSegments), c.build.integers({0}), c.build.integers({1}), c.build.integers({0})});
}

void decompose(DecomposeContext& c) {
  Edge* sum = c.op("Gather", {c.in(kWords), c.in(kIds)});
  const bool segments = c.in(kSegments) != nullptr;
  sum = segments ? c.op("Add", {sum, write_positions(c)}) : c.op_into(2, "Add", {sum, write_positions(c)});
  if (segments) sum = c.op_into(2, "Add", {sum, write_segments(c)});
  c.op_into(0, "LayerNormalization", {sum, c.in(kGamma), c.in(kBeta)},
            c.attributes().set("epsilon", c.attrs<EmbedAttrs>().epsilon));
  write_mask_counts(c, 1, c.in(kIds), c.in(kMask));
}

}  // namespace

extern const OpDef op_microsoft_embed_layer_normalization = {.domain = kMicrosoftDomain,
                                                             .name = "EmbedLayerNormalization",
                                                             .inputs = {7, 9},
                                                             .outputs = {1, 3},
                                                             .attrs = attrs,
                                                             .infer = infer,
                                                             .optional_inputs = 0b10010,
                                                             .decompose = decompose};

}  // namespace plimsoll
