#include "ops/registry.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

Graph* chosen_branch(const Node& node) {
  const Edge* condition = node.input(0);
  if (!is_op(&node, "If") || !is_constant(condition) || condition->constant->bytes() != 1) return nullptr;
  const Attribute* branch =
      node.attribute(*condition->constant->data != std::byte{0} ? "then_branch" : "else_branch");
  return branch != nullptr ? branch->graph : nullptr;
}

// Moves what is in `body` into `graph`, where nodes[place] is the If.
void splice(Graph& graph, size_t place, Graph& body) {
  Node& node = *graph.nodes[place];
  std::vector<Node*> order(graph.nodes.begin(), graph.nodes.end());
  order.erase(order.begin() + static_cast<std::ptrdiff_t>(place));
  std::vector<Node*> moved(body.nodes.begin(), body.nodes.end());
  for (Node* inner : moved) {
    inner->graph = &graph;
    for (Edge* e : inner->outputs) {
      if (e != nullptr) e->graph = &graph;
    }
    for (const Attribute& a : inner->attributes) {
      if (a.graph != nullptr) a.graph->set_outer(graph);
      for (Graph* nested : a.graphs) nested->set_outer(graph);
    }
  }
  for (Edge* e : body.initializers) {
    e->graph = &graph;
    graph.initializers.push_back(e);
  }
  // The outputs keep the If's edges, which the outside knows, through an Identity.
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == nullptr) continue;
    Edge* in[] = {body.outputs[i]};
    Edge* out[] = {node.outputs[i]};
    moved.push_back(graph.add_node("", "Identity", "", in, out));
    resolve(*moved.back(), graph.arena());
    graph.nodes.resize_down(graph.nodes.size() - 1);
  }
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(place), moved.begin(), moved.end());
  graph.nodes.clear();
  for (Node* n : order) graph.nodes.push_back(n);
}

bool inline_in(Graph& graph) {
  bool changed = false;
  for (size_t i = 0; i < graph.nodes.size();) {
    Graph* branch = chosen_branch(*graph.nodes[i]);
    // What a branch brings is looked at again from the same place: it may hold another If.
    if (branch == nullptr || branch->outputs.size() < graph.nodes[i]->outputs.size()) {
      ++i;
      continue;
    }
    splice(graph, i, *branch);
    changed = true;
  }
  return changed;
}

}  // namespace

bool inline_constant_branches(Graph& root, const OptimizeOptions&) {
  bool changed = false;
  root.for_each_graph([&](Graph& graph) { changed |= inline_in(graph); });
  return changed;
}

}  // namespace plimsoll
