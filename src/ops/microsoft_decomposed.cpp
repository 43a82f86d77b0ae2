#include "ops/microsoft_decomposed.h"

namespace plimsoll {

void expect_last_dimension(const InferContext& c, size_t i) {
  if (!c.has_input(i)) return;
  c.expect_rank(i, 1, 1);
  if (!c.ranked(i) || !c.ranked(0)) return;
  if (c.rank(0) == 0) c.reject("input 0: expected a last dimension, found a scalar");
  const Dim found = c.dims(i)[0], expected = c.dims(0).back();
  if (found.is_constant() && expected.is_constant() && !(found == expected))
    c.reject("input {}: expected {} elements, found {}", i, expected.value(), found.value());
}

void infer_like_first(InferContext& c, TypeSet types, std::initializer_list<size_t> others) {
  c.expect_type(0, types);
  for (size_t i : others) {
    if (c.has_input(i)) c.expect_same_type(0, i);
  }
  set_output_like(c, 0, c.type(0), 0);
}

void infer_as(InferContext& c, const OpDef& op, std::string_view domain, int version,
              std::span<const Facts> inputs, std::span<const Attribute> attributes) {
  Node node = c.node();
  node.domain = domain, node.op = &op, node.opset = version, node.attributes = attributes;
  const std::span<Edge*> edges = c.arena().array<Edge*>(inputs.size());
  for (size_t i = 0; i < edges.size(); ++i) {
    const bool is_new = i >= node.inputs.size() && inputs[i].type.type != ElementType::kUndefined;
    edges[i] = is_new ? node.inputs[0] : node.input(i);  // only whether it is there matters
  }
  node.inputs = edges;
  AttrContext context(node, c.arena());
  if (op.attrs != nullptr) node.attrs = op.attrs(context);
  std::vector<Facts> outputs(node.outputs.size());
  InferContext inner(node, inputs, outputs, c.arena(), c.pool(), c.bodies);
  op.infer(inner);
  for (size_t i = 0; i < outputs.size(); ++i) c.set_output_facts(i, outputs[i]);
}

void write_mask_counts(DecomposeContext& c, size_t output, Edge* ids, Edge* mask) {
  if (c.out(output) == nullptr) return;
  Edge* counted = c.op("Sub", {ids, ids});
  if (mask != nullptr) {
    const int32_t one = 1;
    Edge* ones = c.build.constant("one", ElementType::kInt32, {}, std::as_bytes(std::span(&one, 1)));
    counted = c.op("Cast", {c.op("Equal", {mask, ones})}, c.attributes().set("to", int64_t{6}));
  }
  c.op_into(output, "ReduceSum", {counted, c.build.integers({1})},
            c.attributes().set("keepdims", int64_t{0}));
}

std::vector<Facts> facts_of_inputs(const NodeContext& c) {
  std::vector<Facts> facts;
  for (size_t i = 0; i < c.input_count(); ++i) facts.push_back(c.input(i));
  return facts;
}

AttributeList attributes_of(const Node& node, BumpArena& arena) {
  return AttributeList(arena, node);
}

}  // namespace plimsoll
