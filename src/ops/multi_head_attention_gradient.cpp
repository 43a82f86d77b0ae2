// The gradient of com.microsoft's MultiHeadAttention is that of ONNX's Attention behind the biases: the same
// computation written down anew, whose own gradient is asked for. Nobody reads its result.
#include "graph/gradient.h"
#include "ops/multi_head_attention.h"

namespace plimsoll {
namespace {

struct Projected {
  Edge *q, *k, *v;
};

void check(const GradientContext& c, const MultiHeadAttrs& a) {
  for (size_t i : {a.at.query, a.at.key, a.at.value}) {
    if (!c.has_input(i) || !c.ranked(i) || c.rank(i) != 3)
      c.reject("its gradient needs queries, keys and values of three dimensions each");
  }
  for (size_t i : {a.at.past_key, a.at.past_value, a.at.beams}) {
    if (c.has_input(i)) c.reject("its gradient does not know a past");
  }
  for (size_t i = 1; i < 4; ++i) {
    if (c.gradient(i) != nullptr) c.reject("its output {} cannot be differentiated", i);
  }
  for (size_t i : {a.at.query, a.at.value}) {
    if (!c.dims(i)[2].is_constant()) c.reject("its gradient needs the size of heads");
  }
}

// Where the pieces of queries, keys and values begin in the bias, and where the last ends.
std::vector<int64_t> bias_parts(const GradientContext& c, const MultiHeadAttrs& a) {
  const int64_t width = c.dims(a.at.query)[2].value();
  return {0, width, 2 * width, 2 * width + c.dims(a.at.value)[2].value()};
}

Projected with_bias(const GradientContext& c, const MultiHeadAttrs& a) {
  Projected p{c.in(a.at.query), c.in(a.at.key), c.in(a.at.value)};
  if (!c.has_input(a.at.bias)) return p;
  const std::vector<int64_t> parts = bias_parts(c, a);
  Edge** const edges[] = {&p.q, &p.k, &p.v};
  for (size_t i = 0; i < 3; ++i) {
    Edge* part =
        c.op("Slice", {c.in(a.at.bias), c.build.integers({parts[i]}), c.build.integers({parts[i + 1]})});
    *edges[i] = c.op("Add", {*edges[i], part});
  }
  return p;
}

// What padding adds to the scores; null if there is none.
Edge* padding_of(const GradientContext& c, const MultiHeadAttrs& a) {
  if (!c.has_input(a.at.padding)) return nullptr;
  if (!c.ranked(a.at.padding)) c.reject("its gradient needs the rank of key_padding_mask");
  Edge *mask = c.in(a.at.padding), *hidden = nullptr;
  if (c.rank(a.at.padding) == 1) {
    if (!(c.dims(a.at.padding)[0] == c.dims(a.at.query)[0]))
      c.reject("its gradient knows one length for each of the batch");
    Edge* keys = c.op("Squeeze", {c.op("Shape", {c.in(a.at.key)},
                                       c.attributes().set("start", int64_t{1}).set("end", int64_t{2}))});
    Edge* key = c.op("Range", {c.build.scalar(int64_t{0}), keys, c.build.scalar(int64_t{1})});
    Edge* length = c.op("Cast", {c.op("Reshape", {mask, c.build.integers({-1, 1, 1, 1})})},
                        c.attributes().set("to", static_cast<int64_t>(ElementType::kInt64)));
    hidden = c.op("GreaterOrEqual", {key, length});
  } else {
    const bool by_query = c.rank(a.at.padding) == 3;
    mask = c.op("Unsqueeze", {mask, by_query ? c.build.integers({1}) : c.build.integers({1, 2})});
    Edge* seen = c.op("Cast", {mask}, c.attributes().set("to", static_cast<int64_t>(ElementType::kFloat)));
    hidden = c.op("LessOrEqual", {seen, c.scalar(ElementType::kFloat, 0)});
  }
  return c.op("Where", {hidden, c.scalar(double{a.filter}), c.scalar(0)});
}

Edge* sum_of_masks(const GradientContext& c, const MultiHeadAttrs& a) {
  Edge *bias = c.has_input(a.at.mask) ? c.in(a.at.mask) : nullptr, *padding = padding_of(c, a);
  if (bias == nullptr || padding == nullptr) return bias == nullptr ? padding : bias;
  return c.op("Add", {bias, padding});
}

Node* emit_attention(const GradientContext& c, const MultiHeadAttrs& a, const Projected& p, Edge* mask) {
  AttributeList attributes = c.attributes();
  attributes.set("q_num_heads", a.heads).set("kv_num_heads", a.heads).set("is_causal", int64_t{a.causal});
  if (a.scale) attributes.set("scale", static_cast<float>(*a.scale));
  Edge* const inputs[] = {p.q, p.k, p.v, mask};
  return c.build.emit("", "Attention", std::span<Edge* const>(inputs, mask == nullptr ? 3 : 4),
                      attributes.list());
}

std::vector<Edge*> gradients_of(const GradientContext& c, const Node& node, bool with_mask) {
  std::vector<Facts> inputs, outputs;
  for (const Edge* edge : node.inputs) inputs.push_back(edge->facts);
  for (const Edge* edge : node.outputs) outputs.push_back(edge->facts);
  const bool wanted[] = {true, true, true, with_mask};
  Edge* const of_outputs[] = {c.gradient()};
  std::vector<Edge*> found(4, nullptr);
  GradientContext inner(node, inputs, outputs, c.build, of_outputs,
                        std::span<const bool>(wanted, node.inputs.size()),
                        std::span<Edge*>(found.data(), node.inputs.size()));
  node.op->gradient(inner);
  return found;
}

}  // namespace

void gradient_multi_head(GradientContext& c) {
  const auto& a = c.attrs<MultiHeadAttrs>();
  check(c, a);
  const Node* node = emit_attention(c, a, with_bias(c, a), sum_of_masks(c, a));
  const std::vector<Edge*> found = gradients_of(c, *node, c.wants(a.at.mask));
  const size_t given[] = {a.at.query, a.at.key, a.at.value};
  for (size_t i = 0; i < 3; ++i) {
    if (c.wants(given[i])) c.set(given[i], found[i]);
  }
  if (c.wants(a.at.mask)) c.set_broadcast(a.at.mask, found[3]);
  if (!c.wants(a.at.bias)) return;
  std::vector<Edge*> sums;
  for (size_t i = 0; i < 3; ++i)
    sums.push_back(
        c.op("ReduceSum", {found[i], c.build.integers({0, 1})}, c.attributes().set("keepdims", int64_t{0})));
  c.set(a.at.bias, c.op("Concat", {sums[0], sums[1], sums[2]}, c.attributes().set("axis", int64_t{0})));
}

}  // namespace plimsoll
