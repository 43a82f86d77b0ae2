// RotaryEmbedding with its inputs in another order; one position stands for those that follow it.
#include "ops/microsoft_decomposed.h"
#include "ops/movement.h"
#include "ops/rotary_heads.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kPositions = 1, kCosine = 2, kSine = 3;

struct RotaryAttrs {
  bool interleaved = false;
  int64_t heads = 0, rotary = 0;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<RotaryAttrs>();
  a->interleaved = c.integer("interleaved", 0) == 1;
  a->heads = c.integer("num_heads", 0);
  a->rotary = c.integer("rotary_embedding_dim", 0);
  if (a->heads < 0 || a->heads > INT32_MAX) c.reject("attribute 'num_heads': found {}", a->heads);
  if (a->rotary < 0 || a->rotary > INT32_MAX || a->rotary % 2 != 0)
    c.reject("attribute 'rotary_embedding_dim': expected an even number, found {}", a->rotary);
  if (a->rotary > 0 && a->heads == 0) c.reject("rotary_embedding_dim needs num_heads");
  c.ignore("is_packed_batching");  // rows are rotated by their own positions in any case
  c.ignore("scale");               // ONNX Runtime reads it and applies it nowhere
  return a;
}

// Of a 3-D input: named, or as many as the angles make of it. 0 if that is not known.
int64_t heads_of(const NodeContext& c) {
  const auto& a = c.attrs<RotaryAttrs>();
  if (a.heads > 0 || !c.ranked(kX) || c.rank(kX) == 4 || !c.ranked(kCosine)) return a.heads;
  const Dim width = c.dims(kX).back(), pairs = c.dims(kCosine).back();
  if (!width.is_constant() || !pairs.is_constant() || pairs.value() == 0) return 0;
  if (width.value() % (2 * pairs.value()) != 0)
    c.reject("{} elements cannot be divided into heads of {}", width.value(), 2 * pairs.value());
  return width.value() / (2 * pairs.value());
}

void infer(InferContext& c) {
  infer_like_first(c, types(ElementType::kFloat, ElementType::kFloat16, ElementType::kBFloat16),
                   {kCosine, kSine});
  c.expect_rank(kX, 3, 4);
  c.expect_rank(kCosine, 2, 2);
  c.expect_rank(kSine, 2, 2);
  c.expect_type(kPositions, types(ElementType::kInt64));
  c.expect_rank(kPositions, 0, 2);
  if (c.ranked(kCosine) && c.ranked(kSine)) {
    for (size_t d = 0; d < 2; ++d) unify(c, c.dims(kCosine)[d], c.dims(kSine)[d]);
  }
  if (c.ranked(kPositions) && c.rank(kPositions) == 1) unify(c, c.dims(kPositions)[0], 1);
  if (!c.ranked(kX)) return;
  heads_of(c);
  if (!c.ranked(kPositions) || c.rank(kPositions) != 2) return;
  const auto x = c.dims(kX), positions = c.dims(kPositions);
  if (product(positions) == Dim(1)) return;
  unify(c, positions[0], x[0]);
  unify(c, positions[1], x[x.size() == 4 ? 2 : 1]);
}

// [batch, steps] from one number.
Edge* write_positions(DecomposeContext& c) {
  if (!c.ranked(kPositions))
    fail(ErrorCode::kNotImplemented, "{}: position_ids whose rank is unknown", c.node().label());
  if (c.rank(kPositions) == 2 && !(product(c.dims(kPositions)) == Dim(1))) return c.in(kPositions);
  const auto size = [&](int64_t axis) {
    return c.op("Shape", {c.in(kX)}, c.attributes().set("start", axis).set("end", axis + 1));
  };
  Edge* steps = size(-2);  // of [batch, steps, width] and [batch, heads, steps, size]
  Edge* scalar = c.op("Squeeze", {steps, c.build.integers({0})});
  Edge* following = c.op("Range", {c.build.scalar(int64_t{0}), scalar, c.build.scalar(int64_t{1})});
  Edge* first = c.op("Reshape", {c.in(kPositions), c.build.integers({1, 1})});
  Edge* shape = c.op("Concat", {size(0), steps}, c.attributes().set("axis", int64_t{0}));
  return c.op("Expand", {c.op("Add", {first, following}), shape});
}

void decompose(DecomposeContext& c) {
  const auto& a = c.attrs<RotaryAttrs>();
  AttributeList list = c.attributes();
  list.set("interleaved", int64_t{a.interleaved});
  Edge* positions = write_positions(c);
  const int64_t heads = heads_of(c);
  if (heads == 0 && !c.ranked(kX))
    fail(ErrorCode::kNotImplemented, "{}: an input whose rank is unknown, without num_heads",
         c.node().label());
  if (heads == 0 && c.rank(kX) == 3) {
    Edge* pairs = c.op("Shape", {c.in(kCosine)}, c.attributes().set("start", int64_t{1}));
    Edge* size = c.op("Mul", {pairs, c.build.integers({2})});
    return write_rotary_of_heads(c, size, {c.in(kCosine), c.in(kSine), positions}, list);
  }
  if (heads > 0) list.set("num_heads", heads);
  if (a.rotary > 0) list.set("rotary_embedding_dim", a.rotary);
  c.op_into(0, "RotaryEmbedding", {c.in(kX), c.in(kCosine), c.in(kSine), positions}, list);
}

}  // namespace

extern const OpDef op_microsoft_rotary_embedding = {.domain = kMicrosoftDomain,
                                                    .name = "RotaryEmbedding",
                                                    .inputs = {4, 4},
                                                    .attrs = attrs,
                                                    .infer = infer,
                                                    .decompose = decompose};

}  // namespace plimsoll
