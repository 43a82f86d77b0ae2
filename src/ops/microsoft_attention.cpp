// A projection to Q, K and V in one, and attention.
#include "graph/decompose.h"
#include "ops/movement.h"
#include "ops/projected_attention.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kWeights = 1, kBias = 2, kMask = 3, kPast = 4, kAttentionBias = 5, kPastLength = 6;
constexpr ProjectedInputs kInputs{kMask, kPast, kAttentionBias, kPastLength};

struct AttentionAttrs : ProjectedAttrs {
  bool rotates = false;
  int64_t rotary = 0;  // elements of a head that are turned; 0: all
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<AttentionAttrs>();
  read_projected(c, *a);
  a->rotates = c.integer("do_rotary", 0) != 0;
  a->rotary = c.integer("rotary_embedding_dim", 0);
  if (a->rotary < 0 || a->rotary > INT32_MAX || a->rotary % 2 != 0)
    c.reject("attribute 'rotary_embedding_dim': expected an even number, found {}", a->rotary);
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
  const auto& a = c.attrs<AttentionAttrs>();
  infer_projected(c, a, kInputs, x[0], x[1], w[1]);
  const Dim head = projected_shape(c, a, kInputs, x[0], x[1], w[1]).head;
  if (!a.rotates || !head.is_constant()) return;
  if (head.value() < a.rotary)
    c.reject("rotary_embedding_dim {} is larger than a head of {}", a.rotary, head.value());
  if (a.rotary == 0 && head.value() % 2 != 0)
    c.reject("do_rotary: a head of {} elements cannot be divided into two halves", head.value());
}

Edge* size_of(const DecomposeContext& c, Edge* edge, int64_t axis) {
  return c.op("Shape", {edge}, c.attributes().set("start", axis).set("end", axis + 1));
}

Edge* past_length(const DecomposeContext& c) {
  if (c.in(kPast) == nullptr) return c.build.integers({0});
  if (!c.attrs<AttentionAttrs>().shares) return size_of(c, c.in(kPast), 3);
  Edge* length =
      c.op("Cast", {c.in(kPastLength)}, c.attributes().set("to", static_cast<int64_t>(ElementType::kInt64)));
  return c.op("Reshape", {length, c.build.integers({1})});
}

Edge* as_float(const DecomposeContext& c, Edge* edge) {
  return c.op("Cast", {edge}, c.attributes().set("to", static_cast<int64_t>(ElementType::kFloat)));
}

// 0, 1, ... in floats; `count` has one element.
Edge* numbers_below(const DecomposeContext& c, Edge* count) {
  Edge* end = c.op("Squeeze", {count, c.build.integers({0})});
  return as_float(c, c.op("Range", {c.build.scalar(int64_t{0}), end, c.build.scalar(int64_t{1})}));
}

// [1]: how many elements of a head are turned.
Edge* rotated_size(const DecomposeContext& c) {
  const auto& a = c.attrs<AttentionAttrs>();
  if (a.rotary != 0) return c.build.integers({a.rotary});
  if (a.width != 0) return c.build.integers({a.width / a.heads});
  return c.op("Div", {size_of(c, c.in(kWeights), 1), c.build.integers({3 * a.heads})});
}

// [batch, queries, pairs]: the position over 10000 to the power of 2 * pair / rotated. ContribOperators.md
// does not say which angles; these are those of ONNX Runtime's CUDA kernels, the only ones that have this.
Edge* write_angles(const DecomposeContext& c) {
  Edge* rotated = rotated_size(c);
  Edge* pairs = c.op("Div", {rotated, c.build.integers({2})});
  Edge* exponents =
      c.op("Div", {c.op("Mul", {numbers_below(c, pairs), c.build.scalar(-2.0f)}), as_float(c, rotated)});
  Edge* speeds = c.op("Pow", {c.build.scalar(10000.0f), exponents});
  Edge* queries = size_of(c, c.in(kX), 1);
  Edge* positions = c.op("Add", {numbers_below(c, queries), as_float(c, past_length(c))});
  Edge* angles = c.op("Mul", {c.op("Reshape", {positions, c.build.integers({-1, 1})}), speeds});
  Edge* shape =
      c.op("Concat", {size_of(c, c.in(kX), 0), queries, pairs}, c.attributes().set("axis", int64_t{0}));
  return c.op("Expand", {angles, shape});
}

// Q and K are turned by their positions, each element together with the one half of the rotated part further
// on.
Edge* rotate(const DecomposeContext& c, Edge* projected) {
  const auto& a = c.attrs<AttentionAttrs>();
  Edge* angles = write_angles(c);
  const AttributeList type = c.attributes().set("to", static_cast<int64_t>(c.type(kX)));
  Edge* cosine = c.op("Cast", {c.op("Cos", {angles})}, type);
  Edge* sine = c.op("Cast", {c.op("Sin", {angles})}, type);
  AttributeList split = c.attributes().set("axis", int64_t{2});
  Edge* const widths[] = {projected,
                          a.width == 0 ? nullptr : c.build.integers({a.width, a.width, a.value_width})};
  if (a.width == 0) split.set("num_outputs", int64_t{3});
  const auto parts =
      c.build.emit("", "Split", std::span(widths, a.width == 0 ? 1 : 2), split.list(), 3)->outputs;
  const auto turned = [&](Edge* heads) {
    return c.op("RotaryEmbedding", {heads, cosine, sine},
                c.attributes().set("num_heads", a.heads).set("rotary_embedding_dim", a.rotary));
  };
  return c.op("Concat", {turned(parts[0]), turned(parts[1]), parts[2]},
              c.attributes().set("axis", int64_t{2}));
}

void decompose(DecomposeContext& c) {
  Edge* projected = c.op("MatMul", {c.in(kX), c.in(kWeights)});
  if (c.in(kBias) != nullptr) projected = c.op("Add", {projected, c.in(kBias)});
  if (c.attrs<AttentionAttrs>().rotates) projected = rotate(c, projected);
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
