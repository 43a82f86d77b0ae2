#include "ops/control_flow.h"

#include <algorithm>

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
  for (Graph* body : bodies_of(node)) {
    auto add = [&](Edge* edge) {
      if (edge == nullptr || is_inside(edge->graph, body)) return;
      if (std::find(captured.begin(), captured.end(), edge) == captured.end()) captured.push_back(edge);
    };
    body->for_each_graph([&](Graph& inner) {
      for (Node* n : inner.nodes) std::for_each(n->inputs.begin(), n->inputs.end(), add);
      std::for_each(inner.outputs.begin(), inner.outputs.end(), add);
    });
  }
  return captured;
}

}  // namespace plimsoll
