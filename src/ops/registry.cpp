#include "ops/registry.h"

#include "op_table.inc"

namespace plimsoll {

std::span<const OpDef* const> all_ops() {
  return kOpTable;
}

const OpDef* find_op(std::string_view domain, std::string_view name) {
  if (domain == "ai.onnx") domain = "";
  for (const OpDef* op : kOpTable) {
    if (op->name != name) continue;
    if (op->domain == domain || (op->channels_last && domain == kPlimsollDomain)) return op;
  }
  return nullptr;
}

namespace {

void check_arity(const Node& node, const char* what, size_t count, Arity arity) {
  if (count < arity.least || count > arity.most)
    fail(ErrorCode::kInvalidModel, "{}: expected {} to {} {}, found {}", node.label(), arity.least,
         arity.most, what, count);
}

}  // namespace

void resolve(Node& node, BumpArena& arena) {
  node.op = find_op(node.domain, node.op_type);
  if (node.op == nullptr)
    fail(ErrorCode::kNotImplemented, "node '{}': operator {}{}{} (opset {}) is not implemented", node.name,
         node.domain, node.domain.empty() ? "" : ".", node.op_type, node.opset);
  if (node.op->same_as != nullptr) {
    node.opset = node.op->same_version;
    node.op = node.op->same_as;
  }
  check_arity(node, "inputs", node.inputs.size(), node.op->inputs);
  check_arity(node, "outputs", node.outputs.size(), node.op->outputs);
  for (size_t i = 0; i < node.op->inputs.least; ++i) {
    if (node.inputs[i] == nullptr && ((node.op->optional_inputs >> i) & 1) == 0)
      fail(ErrorCode::kInvalidModel, "{}: input {} is missing", node.label(), i);
  }
  AttrContext context(node, arena);
  if (node.op->attrs != nullptr) node.attrs = node.op->attrs(context);
  context.check_all_read();
}

void resolve(Graph& graph) {
  graph.for_each_graph([](Graph& inner) {
    for (Node* node : inner.nodes) resolve(*node, inner.arena());
  });
}

}  // namespace plimsoll
