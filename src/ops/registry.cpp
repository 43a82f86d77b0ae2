#include "ops/registry.h"

#include <algorithm>
#include <unordered_map>

#include "op_table.inc"

namespace plimsoll {

std::span<const OpDef* const> all_ops() {
  return kOpTable;
}

const OpDef* find_op(std::string_view domain, std::string_view name, std::span<const OpDef* const> custom) {
  static const std::unordered_multimap<std::string_view, const OpDef*> by_name = [] {
    std::unordered_multimap<std::string_view, const OpDef*> ops;
    for (const OpDef* op : kOpTable) ops.emplace(op->name, op);
    return ops;
  }();
  if (domain == "ai.onnx") domain = "";
  const auto [begin, end] = by_name.equal_range(name);
  for (auto at = begin; at != end; ++at) {
    const OpDef* op = at->second;
    if (op->domain == domain || (op->channels_last && domain == kPlimsollDomain)) return op;
  }
  const auto found = std::find_if(custom.begin(), custom.end(),
                                  [&](const OpDef* op) { return op->domain == domain && op->name == name; });
  return found == custom.end() ? nullptr : *found;
}

namespace {

void check_arity(const Node& node, const char* what, size_t count, Arity arity) {
  if (count < arity.least || count > arity.most)
    fail(ErrorCode::kInvalidModel, "{}: expected {} to {} {}, found {}", node.label(), arity.least,
         arity.most, what, count);
}

// Whether some version of the operator reads this attribute: then it says something, which the version at
// hand says in another way.
bool is_of_another_version(const Node& node, std::string_view attribute) {
  if (node.op->attrs == nullptr) return false;
  constexpr int kVersions = 30;
  Budget budget("attributes", 0);
  BumpArena arena(budget);
  Node other = node;
  for (other.opset = 1; other.opset <= kVersions; ++other.opset) {
    AttrContext context(other, arena);
    try {
      node.op->attrs(context);
    } catch (const Error&) {  // the others are not of that version
    }
    if (context.was_asked(attribute)) return true;
  }
  return false;
}

// A misspelt attribute leaves the default, as everywhere else.
void judge_unread(const Node& node, const AttrContext& context) {
  for (const Attribute& attribute : node.attributes) {
    if (context.was_asked(attribute.name)) continue;
    if (is_of_another_version(node, attribute.name))
      context.reject("unknown attribute '{}' (opset {})", attribute.name, node.opset);
    context.warn("unknown attribute '{}' (opset {})", attribute.name, node.opset);
  }
}

}  // namespace

void resolve(Node& node, BumpArena& arena) {
  node.op = find_op(node.domain, node.op_type, node.graph->root().custom_ops);
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
  judge_unread(node, context);
}

void resolve(Graph& graph) {
  graph.for_each_graph([](Graph& inner) {
    for (Node* node : inner.nodes) resolve(*node, inner.arena());
  });
}

}  // namespace plimsoll
