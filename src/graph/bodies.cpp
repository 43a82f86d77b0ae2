#include "graph/bodies.h"

#include <unordered_set>

namespace plimsoll {

std::vector<Graph*> bodies_of(const Node& node) {
  std::vector<Graph*> bodies;
  for (const Attribute& attribute : node.attributes) {
    if (attribute.graph != nullptr) bodies.push_back(attribute.graph);
    bodies.insert(bodies.end(), attribute.graphs.begin(), attribute.graphs.end());
  }
  return bodies;
}

namespace {

bool is_inside(const Graph* graph, const Graph* body) {
  for (; graph != nullptr; graph = graph->outer()) {
    if (graph == body) return true;
  }
  return false;
}

}  // namespace

std::vector<Edge*> captured_edges(const Node& node) {
  std::vector<Edge*> captured;
  std::unordered_set<const Edge*> seen;
  for (Graph* body : bodies_of(node)) {
    auto add = [&](Edge* edge) {
      if (edge == nullptr || is_inside(edge->graph, body)) return;
      if (seen.insert(edge).second) captured.push_back(edge);
    };
    body->for_each_graph([&](Graph& inner) {
      for (Node* n : inner.nodes) {
        for (Edge* edge : n->inputs) add(edge);
      }
      for (Edge* edge : inner.outputs) add(edge);
    });
  }
  return captured;
}

}  // namespace plimsoll
