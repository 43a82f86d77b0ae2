#include "onnx/edge_names.h"

#include "base/fail.h"

namespace plimsoll::onnx {
namespace {

template <typename F>
void for_each_body(const Node& node, F&& f) {
  for (const Attribute& attribute : node.attributes) {
    if (attribute.graph != nullptr) f(*attribute.graph);
    for (const Graph* body : attribute.graphs) f(*body);
  }
}

template <typename F>
void for_each_edge(const Graph& graph, F&& f) {
  for (const Edge* edge : graph.inputs) f(edge);
  for (const Edge* edge : graph.outputs) {
    if (edge->graph == &graph) f(edge);
  }
  for (const Edge* edge : graph.initializers) f(edge);
  for (const Node* node : graph.nodes) {
    for (const Edge* edge : node->outputs) {
      if (edge != nullptr) f(edge);
    }
  }
}

// Names that the model uses anywhere, so that made ones differ from all of them.
void collect(const Graph& graph, std::unordered_set<std::string_view>& out) {
  for_each_edge(graph, [&](const Edge* edge) { out.insert(edge->name); });
  for (const Node* node : graph.nodes) {
    for_each_body(*node, [&](const Graph& body) { collect(body, out); });
  }
}

}  // namespace

EdgeNames::EdgeNames(const Graph& root) : names_(root.edge_count()) {
  collect(root, all_);
  for (const Function& function : root.functions) collect(*function.body, all_);
  name_graph(root);
  for (const Function& function : root.functions) name_graph(*function.body);
}

std::string_view EdgeNames::fresh(std::string_view base) {
  if (base.empty()) base = "value";
  for (size_t n = made_.size();; ++n) {
    std::string candidate = fmt::format("{}_{}", base, n);
    if (all_.count(candidate) > 0) continue;
    made_.push_back(std::move(candidate));
    all_.insert(made_.back());
    return made_.back();
  }
}

void EdgeNames::name(const Edge* edge, Taken& taken) {
  if (!names_[edge->id].empty()) return;
  const bool is_free = !edge->name.empty() && taken.count(edge->name) == 0;
  names_[edge->id] = is_free ? edge->name : fresh(edge->name);
  taken.insert(names_[edge->id]);
}

// Values of enclosing graphs have their names already, those of `graph` have none yet.
void EdgeNames::collect_captured(const Graph& graph, Taken& taken) const {
  const auto add = [&](const Edge* edge) {
    if (edge != nullptr && !names_[edge->id].empty()) taken.insert(names_[edge->id]);
  };
  for (const Edge* edge : graph.outputs) add(edge);
  for (const Node* node : graph.nodes) {
    for (const Edge* edge : node->inputs) add(edge);
    for_each_body(*node, [&](const Graph& body) { collect_captured(body, taken); });
  }
}

void EdgeNames::name_graph(const Graph& graph) {
  Taken taken;
  collect_captured(graph, taken);
  for_each_edge(graph, [&](const Edge* edge) { name(edge, taken); });
  for (const Node* node : graph.nodes) {
    for_each_body(*node, [&](const Graph& body) { name_graph(body); });
  }
}

}  // namespace plimsoll::onnx
