#include "graph/decompose.h"
#include "graph/infer.h"
#include "ops/registry.h"
#include "prepare/lower.h"

namespace plimsoll {
namespace {

// Names nodes after the one that they stand for.
class DecomposeBuilder : public GraphBuilder {
 public:
  DecomposeBuilder(Graph& graph, const Node& origin) : GraphBuilder(graph, origin.name), origin_(origin) {}

 private:
  void added(Node& node) override {
    node.name = graph().arena().copy(fmt::format("{}/{}", origin_.name, node.op_type));
    if (node.domain.empty()) node.opset = kDecomposeOpset;
  }

  const Node& origin_;
};

class Decomposition {
 public:
  void run(Graph& graph) {
    const std::vector<Node*> before(graph.nodes.begin(), graph.nodes.end());
    std::vector<Node*> after;
    after.reserve(before.size());
    for (Node* node : before) expand(graph, *node, after);
    if (after == before) return;
    graph.nodes.clear();
    for (Node* node : after) graph.nodes.push_back(node);
  }
  bool changed() const { return changed_; }

 private:
  void expand(Graph& graph, Node& node, std::vector<Node*>& out) {
    if (const OpDef* named = find_op(node.domain, node.op_type);
        named != nullptr && named->same_as != nullptr) {
      node.domain = node.op->domain;
      node.op_type = node.op->name;
    }
    if (node.op->decompose == nullptr) {
      out.push_back(&node);
      return;
    }
    changed_ = true;
    const size_t first = graph.nodes.size();
    const std::vector<Facts> inputs = facts_of_edges(node.inputs);
    std::vector<Facts> outputs = facts_of_edges(node.outputs);
    for (Edge* edge : node.outputs) {
      if (edge != nullptr) edge->producer = nullptr;
    }
    DecomposeBuilder builder(graph, node);
    DecomposeContext context(node, inputs, outputs, builder);
    node.op->decompose(context);
    const std::vector<Node*> made(graph.nodes.begin() + first, graph.nodes.end());
    graph.nodes.resize_down(first);
    for (Node* next : made) {
      resolve(*next, graph.arena());
      expand(graph, *next, out);
    }
  }

  bool changed_ = false;
};

}  // namespace

bool decompose_operators(Graph& root) {
  Decomposition decomposition;
  root.for_each_graph([&](Graph& graph) { decomposition.run(graph); });
  return decomposition.changed();
}

}  // namespace plimsoll
