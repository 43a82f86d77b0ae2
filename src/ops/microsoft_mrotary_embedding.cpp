// RotaryEmbedding whose tokens have three positions (time, height, width), each for its share of the angles.
#include "ops/microsoft_decomposed.h"
#include "ops/movement.h"
#include "ops/rotary_heads.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kPositions = 1, kCosine = 2, kSine = 3;

struct MRotaryAttrs {
  bool interleaved = false, striped = false;
  int64_t heads = 0, rotary = 0, pairs = 0;
  std::span<const int64_t> shares;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<MRotaryAttrs>();
  a->interleaved = c.integer("interleaved", 0) == 1;
  a->heads = c.integer("num_heads", 0);
  a->rotary = c.integer("rotary_embedding_dim", 0);
  if (a->heads < 0 || a->heads > INT32_MAX) c.reject("attribute 'num_heads': found {}", a->heads);
  if (a->rotary < 0 || a->rotary > INT32_MAX || a->rotary % 2 != 0)
    c.reject("attribute 'rotary_embedding_dim': expected an even number, found {}", a->rotary);
  if (a->rotary > 0 && a->heads == 0) c.reject("rotary_embedding_dim needs num_heads");
  const int64_t layout = c.integer("mrope_layout", 0);
  if (layout != 0 && layout != 1) c.reject("attribute 'mrope_layout': expected 0 or 1, found {}", layout);
  a->striped = layout == 1;
  a->shares = c.integers("mrope_section");
  if (a->shares.size() != 3)
    c.reject("attribute 'mrope_section': expected 3 numbers, found {}", a->shares.size());
  constexpr int64_t kMost = 1 << 20;
  for (int64_t share : a->shares) {
    if (share < 0 || share > kMost) c.reject("attribute 'mrope_section': found {}", share);
    a->pairs += share;
  }
  c.ignore("is_packed_batching");
  c.ignore("scale");
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<MRotaryAttrs>();
  infer_like_first(c, types(ElementType::kFloat, ElementType::kFloat16, ElementType::kBFloat16),
                   {kCosine, kSine});
  c.expect_rank(kX, 3, 4);
  c.expect_type(kPositions, types(ElementType::kInt64));
  c.expect_rank(kPositions, 3, 3);
  for (size_t i : {kCosine, kSine}) {
    c.expect_rank(i, 2, 2);
    if (c.ranked(i)) unify(c, c.dims(i)[1], Dim(a.pairs));
  }
  if (c.ranked(kCosine) && c.ranked(kSine)) unify(c, c.dims(kCosine)[0], c.dims(kSine)[0]);
  if (!c.ranked(kPositions)) return;
  const auto positions = c.dims(kPositions);
  unify(c, positions[0], Dim(3));
  if (!c.ranked(kX)) return;
  unify(c, positions[1], c.dims(kX)[0]);
  unify(c, positions[2], c.dims(kX)[c.rank(kX) == 4 ? 2 : 1]);
  const Dim width = c.dims(kX).back();
  if (c.rank(kX) == 3 && a.heads == 0 && width.is_constant() &&
      (a.pairs == 0 || width.value() % (2 * a.pairs) != 0))
    c.reject("{} elements cannot be divided into heads of {}", width.value(), 2 * a.pairs);
}

// True for the pairs of one of the positions.
Edge* pairs_of(DecomposeContext& c, size_t which) {
  const auto& a = c.attrs<MRotaryAttrs>();
  std::vector<std::byte> flags(static_cast<size_t>(a.pairs));
  const int64_t first = which == 1 ? a.shares[0] : a.shares[0] + a.shares[1];
  for (int64_t p = 0; p < a.pairs; ++p) {
    const bool is_own = a.striped ? p % 3 == static_cast<int64_t>(which) && p < 3 * a.shares[which]
                                  : p >= first && p < first + a.shares[which];
    flags[static_cast<size_t>(p)] = std::byte{is_own};
  }
  const int64_t dims[] = {a.pairs};
  return c.build.constant("pairs", ElementType::kBool, dims, flags);
}

// [batch, steps, pairs] from [3, batch, steps, pairs]
Edge* chosen(DecomposeContext& c, size_t table) {
  Edge* all = c.op("Gather", {c.in(table), c.in(kPositions)});
  const auto one = [&](int64_t which) {
    return c.op("Gather", {all, c.build.scalar(which)}, c.attributes().set("axis", int64_t{0}));
  };
  Edge* of_two = c.op("Where", {pairs_of(c, 1), one(1), one(0)});
  return c.op("Where", {pairs_of(c, 2), one(2), of_two});
}

void decompose(DecomposeContext& c) {
  const auto& a = c.attrs<MRotaryAttrs>();
  AttributeList list = c.attributes();
  list.set("interleaved", int64_t{a.interleaved});
  if (!c.ranked(kX) && a.heads == 0)
    fail(ErrorCode::kNotImplemented, "{}: an input whose rank is unknown, without num_heads",
         c.node().label());
  const bool divides = a.heads == 0 && c.rank(kX) == 3;
  const RotaryTables tables{chosen(c, kCosine), chosen(c, kSine), nullptr};
  if (divides && !c.dims(kX).back().is_constant())
    return write_rotary_of_heads(c, c.build.integers({2 * a.pairs}), tables, list);
  const int64_t heads = divides ? c.dims(kX).back().value() / (2 * a.pairs) : a.heads;
  if (heads > 0) list.set("num_heads", heads);
  if (a.rotary > 0) list.set("rotary_embedding_dim", a.rotary);
  c.op_into(0, "RotaryEmbedding", {c.in(kX), tables.cosine, tables.sine}, list);
}

}  // namespace

extern const OpDef op_microsoft_mrotary_embedding = {.domain = kMicrosoftDomain,
                                                     .name = "MRotaryEmbedding",
                                                     .inputs = {4, 4},
                                                     .attrs = attrs,
                                                     .infer = infer,
                                                     .decompose = decompose};

}  // namespace plimsoll
