#include "train/training_mode.h"

#include <algorithm>
#include <unordered_map>

#include "base/fail.h"
#include "graph/bodies.h"
#include "graph/builder.h"
#include "graph/gradient.h"
#include "ops/registry.h"
#include "train/losses.h"

namespace plimsoll {
namespace {

bool is_batch_normalization(const Node& node) {
  return node.domain.empty() && node.op_type == "BatchNormalization";
}
bool is_dropout(const Node& node) {
  return node.domain.empty() && node.op_type == "Dropout";
}

// As the newest version has it.
void make_new(Node& node, std::vector<Edge*> inputs, std::vector<Edge*> outputs,
              const AttributeList& attributes) {
  BumpArena& arena = node.graph->arena();
  node.inputs = arena.copy(inputs);
  node.outputs = arena.copy(outputs);
  node.attributes = arena.copy(attributes.list());
  node.opset = kGradientOpset;
  for (Edge* edge : node.outputs) {
    if (edge != nullptr) edge->producer = &node;
  }
  resolve(node, arena);
}

void normalize_by_batch(Node& node) {
  Graph& graph = *node.graph;
  AttributeList attributes(graph.arena(), node);
  attributes.erase("spatial").set("training_mode", int64_t{1});
  std::vector<Edge*> outputs = {node.outputs[0]};
  for (const size_t i : {3, 4}) {
    Edge* running = node.inputs[i];
    if (running->data == nullptr || running->persistent)
      fail(ErrorCode::kNotImplemented, "{}: expected running statistics of its own, found '{}'", node.label(),
           running->name);
    running->make_persistent();
    Edge* next = graph.add_edge(fmt::format("{}.next", running->name));
    next->facts.type = running->facts.type;
    outputs.push_back(next);
    graph.add_update(running, next);
  }
  make_new(node, {node.inputs.begin(), node.inputs.end()}, outputs, attributes);
}

void drop_out(Node& node) {
  Graph& graph = *node.graph;
  TrainBuilder build(graph, node.name);
  AttributeList attributes(graph.arena(), node);
  std::vector<Edge*> inputs = {node.inputs[0], node.input(1), nullptr};
  if (const Attribute* ratio = node.attribute("ratio")) {
    inputs[1] = build.scalar(ratio->f);
    attributes.erase("ratio");
  }
  const std::byte yes{1};
  inputs[2] = build.constant("training", ElementType::kBool, {}, std::span<const std::byte>(&yes, 1));
  attributes.erase("is_test");
  make_new(node, inputs, {node.outputs.begin(), node.outputs.end()}, attributes);
}

}  // namespace

bool differs_in_training(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node* node) { return is_batch_normalization(*node) || is_dropout(*node); });
}

void copy_for_evaluation(Graph& graph, std::span<Edge*> edges) {
  std::unordered_map<const Edge*, Edge*> copies;
  const auto copy_of = [&](Edge* edge) {
    const auto found = copies.find(edge);
    return found == copies.end() ? edge : found->second;
  };
  const size_t count = graph.nodes.size();
  for (size_t n = 0; n < count; ++n) {
    const Node& node = *graph.nodes[n];
    if (!bodies_of(node).empty())
      fail(ErrorCode::kNotImplemented,
           "{}: a model with bodies and with operators that differ in training cannot be evaluated",
           node.label());
    std::vector<Edge*> inputs, outputs;
    for (Edge* edge : node.inputs) inputs.push_back(edge == nullptr ? nullptr : copy_of(edge));
    for (Edge* edge : node.outputs) {
      outputs.push_back(edge == nullptr ? nullptr : graph.add_edge(edge->name));
      if (edge == nullptr) continue;
      outputs.back()->facts = edge->facts;
      copies[edge] = outputs.back();
    }
    Node* made = graph.add_node(node.domain, node.op_type, fmt::format("{}/evaluation", node.name), inputs,
                                outputs, node.attributes);
    made->opset = node.opset, made->op = node.op, made->attrs = node.attrs, made->overload = node.overload;
  }
  for (Edge*& edge : graph.outputs) edge = copy_of(edge);
  for (Edge*& edge : edges) edge = copy_of(edge);
}

void set_training_mode(Graph& graph, size_t count) {
  for (size_t n = 0; n < count; ++n) {
    Node& node = *graph.nodes[n];
    if (is_batch_normalization(node)) normalize_by_batch(node);
    if (is_dropout(node)) drop_out(node);
  }
}

}  // namespace plimsoll
