// EmbedLayerNormalization whose tables are of 8 bits: rows are looked up first, and become floats then.
#include "ops/microsoft_decomposed.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr size_t kIds = 0, kSegmentIds = 1, kWords = 2, kPositions = 3, kSegments = 4, kGamma = 5, kBeta = 6,
                 kMask = 7;
constexpr size_t kTables[] = {kWords, kPositions, kSegments, kGamma, kBeta};
// The scales of the five stand behind the mask, then their zero points.
constexpr size_t scale_of(size_t table) {
  return 8 + table - kWords;
}
constexpr size_t zero_of(size_t table) {
  return 13 + table - kWords;
}

struct EmbedAttrs {
  float epsilon = 1e-12f;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<EmbedAttrs>();
  a->epsilon = c.real("epsilon", 1e-12f);
  return a;
}

void check_table(const InferContext& c, size_t table, Dim width) {
  c.expect_type(table, types(ElementType::kInt8, ElementType::kUint8));
  const size_t rank = table == kGamma || table == kBeta ? 1 : 2;
  c.expect_rank(table, rank, rank);
  if (c.ranked(table)) unify(c, c.dims(table).back(), width);
  for (size_t i : {scale_of(table), zero_of(table)}) {
    if (!c.has_input(i)) c.reject("input {} is needed", i);
    const Dim count = c.ranked(i) ? product(c.dims(i)) : Dim(1);
    if (count.is_constant() && count.value() != 1)
      c.reject("input {}: expected one value, found shape {}", i, to_string(c.dims(i)));
  }
  c.expect_type(scale_of(table), types(ElementType::kFloat));
  c.expect_same_type(table, zero_of(table));
}

void infer(InferContext& c) {
  c.expect_rank(kIds, 2, 2);
  for (size_t i : {kIds, kSegmentIds, kMask}) {
    if (!c.has_input(i)) continue;
    c.expect_type(i, types(ElementType::kInt32));
    c.expect_rank(i, 2, 2);
    if (!c.ranked(i) || !c.ranked(kIds)) continue;
    for (size_t d = 0; d < 2; ++d) unify(c, c.dims(i)[d], c.dims(kIds)[d]);
  }
  if (c.has_input(kSegmentIds) != c.has_input(kSegments))
    c.reject("segment_ids and segment_embedding are given together or not at all");
  c.expect_rank(kWords, 2, 2);
  const Dim width = c.ranked(kWords) ? c.dims(kWords)[1] : c.unknown("hidden");
  for (size_t table : kTables) {
    if (c.has_input(table)) check_table(c, table, width);
  }
  if (!c.ranked(kIds)) {
    c.set_unranked_output(0, ElementType::kFloat);
    return c.set_unranked_output(1, ElementType::kInt32);
  }
  const auto ids = c.dims(kIds);
  if (c.ranked(kPositions) && c.dims(kPositions)[0].is_constant() && ids[1].is_constant() &&
      c.dims(kPositions)[0].value() < ids[1].value())
    c.reject("{} positions are too few for a sequence of {}", c.dims(kPositions)[0].value(), ids[1].value());
  c.set_output(0, ElementType::kFloat, std::vector<Dim>{ids[0], ids[1], width});
  c.set_output(1, ElementType::kInt32, std::vector<Dim>{ids[0]});
}

void decompose(DecomposeContext& c) {
  const auto as_float = [&](size_t table, Edge* rows) {
    const auto scalar = [&](size_t i) { return c.op("Reshape", {c.in(i), c.build.integers({})}); };
    return c.op("DequantizeLinear", {rows, scalar(scale_of(table)), scalar(zero_of(table))});
  };
  Edge* length = c.op("Shape", {c.in(kIds)}, c.attributes().set("start", int64_t{1}).set("end", int64_t{2}));
  Edge* places = c.op("Slice", {c.in(kPositions), c.build.integers({0}), length, c.build.integers({0})});
  Edge* sum = c.op(
      "Add", {as_float(kWords, c.op("Gather", {c.in(kWords), c.in(kIds)})), as_float(kPositions, places)});
  if (c.in(kSegments) != nullptr)
    sum = c.op("Add", {sum, as_float(kSegments, c.op("Gather", {c.in(kSegments), c.in(kSegmentIds)}))});
  c.op_into(0, "LayerNormalization", {sum, as_float(kGamma, c.in(kGamma)), as_float(kBeta, c.in(kBeta))},
            c.attributes().set("epsilon", c.attrs<EmbedAttrs>().epsilon));
  write_mask_counts(c, 1, c.in(kIds), c.in(kMask));
}

}  // namespace

extern const OpDef op_microsoft_qembed_layer_normalization = {.domain = kMicrosoftDomain,
                                                              .name = "QEmbedLayerNormalization",
                                                              .inputs = {18, 18},
                                                              .outputs = {1, 2},
                                                              .attrs = attrs,
                                                              .infer = infer,
                                                              .optional_inputs = 0b1000010010010010,
                                                              .decompose = decompose};

}  // namespace plimsoll
