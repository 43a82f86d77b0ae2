#include "graph/bodies.h"

#include <algorithm>
#include <unordered_set>

#include "graph/op_def.h"

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

bool has_random_nodes(const Graph& body) {
  return std::any_of(body.nodes.begin(), body.nodes.end(), [](const Node* node) {
    if (node->op->control_flow == nullptr) return !node->op->deterministic;
    const std::vector<Graph*> inner = bodies_of(*node);
    return std::any_of(inner.begin(), inner.end(),
                       [](const Graph* graph) { return has_random_nodes(*graph); });
  });
}

Edge* copy_of(const EdgeMap& edges, Edge* edge) {
  const auto found = edges.find(edge);
  return found == edges.end() ? edge : found->second;
}

namespace {

class Copier {
 public:
  Copier(EdgeMap& edges, std::string_view prefix, Resolver resolver)
      : edges_(edges), prefix_(prefix), resolver_(resolver) {}

  void copy(const Graph& body, Graph& into) {
    for (const Edge* edge : body.initializers) {
      Edge* made = make(edge, into);
      made->persistent = edge->persistent;
      made->account = edge->account;
      if (edge->data != nullptr) made->set_data(into.arena(), *edge->data);
      into.initializers.push_back(made);
    }
    for (const Node* node : body.nodes) copy(*node, into);
  }

 private:
  Edge* make(const Edge* edge, Graph& into) {
    Edge* made = into.add_edge(fmt::format("{}/{}_{}", prefix_, edge->name, into.edge_count()));
    made->facts = edge->facts;
    edges_[edge] = made;
    return made;
  }

  void copy(const Node& node, Graph& into) {
    std::vector<Edge*> inputs, outputs;
    for (Edge* edge : node.inputs) inputs.push_back(copy_of(edges_, edge));
    for (const Edge* edge : node.outputs) outputs.push_back(edge == nullptr ? nullptr : make(edge, into));
    std::vector<Attribute> attributes(node.attributes.begin(), node.attributes.end());
    bool has_bodies = false;
    for (Attribute& a : attributes) {
      has_bodies |= a.graph != nullptr || !a.graphs.empty();
      if (a.graph != nullptr) a.graph = copy_body(*a.graph, into);
      const std::span<Graph*> bodies = into.arena().array<Graph*>(a.graphs.size());
      for (size_t i = 0; i < bodies.size(); ++i) bodies[i] = copy_body(*a.graphs[i], into);
      a.graphs = bodies;
    }
    Node* made = into.add_node(node.domain, node.op_type, fmt::format("{}/{}", prefix_, node.name), inputs,
                               outputs, attributes);
    made->opset = node.opset, made->op = node.op, made->attrs = node.attrs, made->overload = node.overload;
    if (has_bodies) resolver_(*made, into.arena());  // what it read of its attributes are the old bodies
  }

  Graph* copy_body(const Graph& body, Graph& outer) {
    Graph* made = outer.arena().make<Graph>(outer);
    made->name = body.name;
    for (const Edge* edge : body.inputs) made->inputs.push_back(make(edge, *made));
    copy(body, *made);
    for (Edge* edge : body.outputs) made->outputs.push_back(copy_of(edges_, edge));
    return made;
  }

  EdgeMap& edges_;
  std::string_view prefix_;
  Resolver resolver_;
};

}  // namespace

void copy_nodes(const Graph& body, Graph& into, EdgeMap& edges, std::string_view prefix, Resolver resolver) {
  Copier(edges, prefix, resolver).copy(body, into);
}

void remove_unused_nodes(Graph& body) {
  std::unordered_set<const Edge*> needed(body.outputs.begin(), body.outputs.end());
  std::vector<Node*> kept;
  for (size_t i = body.nodes.size(); i-- > 0;) {
    Node* node = body.nodes[i];
    const auto is_needed = [&](const Edge* edge) { return edge != nullptr && needed.count(edge) > 0; };
    if (std::none_of(node->outputs.begin(), node->outputs.end(), is_needed)) continue;
    needed.insert(node->inputs.begin(), node->inputs.end());
    for (const Edge* edge : captured_edges(*node)) needed.insert(edge);
    kept.push_back(node);
  }
  std::copy(kept.rbegin(), kept.rend(), body.nodes.begin());
  body.nodes.resize_down(kept.size());
}

}  // namespace plimsoll
