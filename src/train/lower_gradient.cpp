#include "train/lower_gradient.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "graph/builder.h"
#include "graph/infer.h"
#include "ops/gradient.h"
#include "ops/registry.h"
#include "train/differentiate.h"

namespace plimsoll {
namespace {

Edge* find_edge(Graph& graph, std::string_view name) {
  const auto named = [&](const auto& edges) -> Edge* {
    const auto found =
        std::find_if(edges.begin(), edges.end(), [&](Edge* e) { return e != nullptr && e->name == name; });
    return found == edges.end() ? nullptr : *found;
  };
  if (Edge* edge = named(graph.inputs)) return edge;
  if (Edge* edge = named(graph.initializers)) return edge;
  for (const Node* node : graph.nodes) {
    if (Edge* edge = named(node->outputs)) return edge;
  }
  return graph.outer() == nullptr ? nullptr : find_edge(*graph.outer(), name);
}

class Lowering {
 public:
  Lowering(Graph& graph, Node& node) : graph_(graph), node_(node) {}

  void run() {
    const auto& attrs = *static_cast<const GradientAttrs*>(node_.attrs);
    std::vector<Edge*> named;
    for (std::string_view name : attrs.xs) named.push_back(find(name));
    for (std::string_view name : attrs.zs) named.push_back(find(name));
    Edge* y = find(attrs.y);
    if (y->graph != &graph_)
      fail(ErrorCode::kNotImplemented, "{}: 'y' is '{}', of a graph around its own", node_.label(), attrs.y);
    if (!std::equal(named.begin(), named.end(), node_.inputs.begin(), node_.inputs.end())) {
      for (size_t i = 0; i < named.size(); ++i) copies_[named[i]] = node_.inputs[i];
      y = copied(y);
    }
    const std::span<Edge* const> xs = node_.inputs.first(attrs.xs.size());
    const Cotangent of_y[] = {{y, nullptr}};
    std::vector<Edge*> gradients = differentiate(graph_, of_y, xs);
    replace_outputs(gradients);
  }

 private:
  Edge* find(std::string_view name) {
    Edge* edge = find_edge(graph_, name);
    if (edge == nullptr) fail(ErrorCode::kInvalidModel, "{}: there is no tensor '{}'", node_.label(), name);
    return edge;
  }

  // The edge as it is where the inputs stand for what they are named after. In the order of the nodes, so
  // that long chains need no deep recursion.
  Edge* copied(Edge* y) {
    std::unordered_set<const Edge*> needed = {y};
    std::vector<Node*> between;
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      Node* node = graph_.nodes[i];
      const auto is_needed = [&](const Edge* e) { return needed.count(e) > 0 && copies_.count(e) == 0; };
      if (!std::any_of(node->outputs.begin(), node->outputs.end(), is_needed)) continue;
      between.push_back(node);
      needed.insert(node->inputs.begin(), node->inputs.end());
    }
    for (size_t i = between.size(); i-- > 0;) copy(*between[i]);
    const auto found = copies_.find(y);
    return found == copies_.end() ? y : found->second;
  }

  void copy(const Node& node) {
    const auto now = [&](Edge* edge) {
      const auto found = copies_.find(edge);
      return found == copies_.end() ? edge : found->second;
    };
    std::vector<Edge*> inputs, outputs;
    for (Edge* edge : node.inputs) inputs.push_back(now(edge));
    if (inputs == std::vector<Edge*>(node.inputs.begin(), node.inputs.end())) return;
    if (node.op->control_flow != nullptr)
      fail(ErrorCode::kNotImplemented, "{}: {} cannot be computed again for other inputs", node_.label(),
           node.label());
    for (Edge* edge : node.outputs) {
      outputs.push_back(edge == nullptr ? nullptr
                                        : graph_.add_edge(fmt::format("{}/{}", node_.name, edge->name)));
      if (edge != nullptr) copies_.emplace(edge, outputs.back());
    }
    Node* made = graph_.add_node(node.domain, node.op_type, fmt::format("{}/{}", node_.name, node.name),
                                 inputs, outputs, node.attributes);
    made->opset = node.opset;
    made->op = node.op;
    made->attrs = node.attrs;
    infer_outputs(*made);
  }

  void replace_outputs(std::span<Edge*> gradients) {
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i] == nullptr) gradients[i] = zeros_like(graph_, node_.inputs[i]);
    }
    const auto at = std::find(graph_.nodes.begin(), graph_.nodes.end(), &node_);
    std::copy(at + 1, graph_.nodes.end(), at);
    graph_.nodes.resize_down(graph_.nodes.size() - 1);
    GraphBuilder build(graph_, node_.name, resolve);
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (node_.outputs[i] == nullptr) continue;
      build.emit_into(node_.outputs.subspan(i, 1), "", "Identity", {&gradients[i], 1}, {});
    }
    graph_.sort();
  }

  Graph& graph_;
  Node& node_;
  std::unordered_map<const Edge*, Edge*> copies_;
};

bool lower_in(Graph& graph) {
  bool changed = false;
  const auto is_gradient = [](const Node* node) { return node->op == &op_gradient; };
  for (;;) {
    Node** found = std::find_if(graph.nodes.begin(), graph.nodes.end(), is_gradient);
    if (found == graph.nodes.end()) return changed;
    Lowering(graph, **found).run();
    changed = true;
  }
}

}  // namespace

bool lower_gradients(Graph& root) {
  std::vector<Graph*> graphs;
  root.for_each_graph([&](Graph& graph) { graphs.push_back(&graph); });
  bool changed = false;
  for (Graph* graph : graphs) changed |= lower_in(*graph);
  return changed;
}

}  // namespace plimsoll
