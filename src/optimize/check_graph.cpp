#include "optimize/check_graph.h"

#include <algorithm>

#include "base/fail.h"
#include "graph/infer.h"
#include "ops/registry.h"
#include "optimize/match.h"

namespace plimsoll {
namespace {

template <typename... Args>
[[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorCode::kInvalidModel, "{}", fmt::format(format, std::forward<Args>(args)...));
}

// Walks the model in the order in which it runs.
class LinkChecker {
 public:
  explicit LinkChecker(Graph& root) : known_(root.edge_count(), false), made_(root.edge_count(), false) {}

  void check(Graph& graph) {
    std::vector<const Edge*> own;
    for (const Edge* edge : graph.inputs) begin(edge, graph, nullptr, own);
    for (const Edge* edge : graph.initializers) {
      if (edge->data == nullptr) wrong("initializer '{}' has no data", edge->name);
      const bool is_input = std::find(graph.inputs.begin(), graph.inputs.end(), edge) != graph.inputs.end();
      if (!is_input) begin(edge, graph, nullptr, own);
    }
    for (const Node* node : graph.nodes) check(*node, graph, own);
    for (const Edge* edge : graph.outputs) {
      if (!known_[edge->id]) wrong("output '{}' is made by nobody", edge->name);
    }
    for (const Edge* edge : own) known_[edge->id] = false;
  }

 private:
  void check(const Node& node, Graph& graph, std::vector<const Edge*>& own) {
    if (node.graph != &graph) wrong("{} is listed in a graph that is not its own", node.label());
    if (node.op == nullptr) wrong("{} is not resolved", node.label());
    for (const Edge* edge : node.inputs) {
      if (edge != nullptr && !known_[edge->id])
        wrong("{}: input '{}' is not made before it, or cannot be seen here", node.label(), edge->name);
    }
    for (const Attribute& attribute : node.attributes) {
      if (attribute.graph != nullptr) check_body(node, *attribute.graph);
      for (Graph* body : attribute.graphs) check_body(node, *body);
    }
    for (const Edge* edge : node.outputs) {
      if (edge != nullptr) begin(edge, graph, &node, own);
    }
  }

  void check_body(const Node& node, Graph& body) {
    if (body.outer() != node.graph) wrong("{}: a body does not know what encloses it", node.label());
    check(body);
  }

  void begin(const Edge* edge, const Graph& graph, const Node* maker, std::vector<const Edge*>& own) {
    if (edge->graph != &graph) wrong("'{}' is made in a graph that is not its own", edge->name);
    if (made_[edge->id]) wrong("'{}' is made twice", edge->name);
    if (edge->producer != maker) wrong("'{}' has another producer than the node that makes it", edge->name);
    if (maker != nullptr && (edge->data != nullptr || edge->constant != nullptr))
      wrong("'{}' is both a constant and what {} makes", edge->name, maker->label());
    made_[edge->id] = known_[edge->id] = true;
    own.push_back(edge);
  }

  std::vector<bool> known_;  // by edge: can be used here
  std::vector<bool> made_;   // by edge: somewhere
};

// Both are right of the same value.
void check_agreement(const Edge& edge, const Facts& told, const Facts& found) {
  const TypeInfo &a = told.type, &b = found.type;
  const bool same_type = a.type == ElementType::kUndefined || (a.kind == b.kind && a.type == b.type);
  bool same = same_type && (!a.ranked || !b.ranked || a.rank() == b.rank());
  for (size_t i = 0; same && a.ranked && b.ranked && i < a.rank(); ++i)
    same = !a.dims[i].is_constant() || !b.dims[i].is_constant() || a.dims[i] == b.dims[i];
  if (!same) wrong("'{}' is said to be {}, inference finds {}", edge.name, to_string(a), to_string(b));
  if (!told.values || !found.values) return;
  same = told.values->size() == found.values->size();
  for (size_t i = 0; same && i < told.values->size(); ++i) {
    const Dim x = (*told.values)[i], y = (*found.values)[i];
    same = !x.is_constant() || !y.is_constant() || x == y;
  }
  if (!same)
    wrong("'{}' is said to hold {}, inference finds {}", edge.name, to_string(*told.values),
          to_string(*found.values));
}

class FactsChecker {
 public:
  explicit FactsChecker(Graph& root) : table_(root, root.arena()) {
    for (const Edge* edge : root.inputs) table_[edge] = edge->facts;
    GraphInferrer(table_, root.arena(), root.dims()).infer(root);
  }
  void check(const Graph& graph) const {
    for (const Node* node : graph.nodes) {
      for (const Edge* edge : node->outputs) {
        if (edge != nullptr) check_agreement(*edge, edge->facts, table_[edge]);
      }
      // Of a branch that is never taken nothing is inferred.
      const bool decided = is_op(node, "If") && (table_[node->inputs[0]].constant != nullptr ||
                                                 table_[node->inputs[0]].values.has_value());
      for (const Attribute& attribute : node->attributes) {
        if (attribute.graph != nullptr && !decided) check(*attribute.graph);
      }
    }
  }

 private:
  FactsTable table_;
};

}  // namespace

void check_links(Graph& root) {
  LinkChecker(root).check(root);
}

PassChecker::PassChecker(Graph& root) : root_(root), warnings_(root.warnings.size()) {
  check_links(root);
  for (const Edge* edge : root.outputs) {
    names_.emplace_back(edge->name);
    types_.push_back(edge->facts.type);
  }
}

void PassChecker::check(const std::string& pass) {
  try {
    check_links(root_);
    check_nodes();
    check_facts();
    check_outputs();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidModel && error.code() != ErrorCode::kNotImplemented) throw;
    fail(ErrorCode::kInvalidModel, "{} is wrong (a bug in Plimsoll): {}", pass, error.what());
  }
}

void PassChecker::check_nodes() {
  root_.for_each_graph([&](Graph& graph) {
    for (const Node* node : graph.nodes) {
      Node again = *node;
      resolve(again, graph.arena());
      if (again.op != node->op) wrong("{} runs as another operator", node->label());
    }
  });
  // What a file may do wrong a pass may not.
  if (root_.warnings.size() > warnings_) wrong("{}", root_.warnings.back());
}

void PassChecker::check_facts() {
  FactsChecker(root_).check(root_);
}

void PassChecker::check_outputs() {
  if (root_.outputs.size() != names_.size()) wrong("the model has other outputs");
  for (size_t i = 0; i < names_.size(); ++i) {
    const Edge& edge = *root_.outputs[i];
    const TypeInfo &before = types_[i], &after = edge.facts.type;
    bool same = edge.name == names_[i] && before.type == after.type && before.kind == after.kind;
    if (before.ranked) {
      same &= after.ranked && before.rank() == after.rank();
      for (size_t d = 0; same && d < before.rank(); ++d)
        same = before.dims[d] == after.dims[d] || before.dims[d].depends_on_data();
    }
    if (!same)
      wrong("output {} was '{}' {}, is '{}' {}", i, names_[i], to_string(before), edge.name,
            to_string(after));
  }
}

}  // namespace plimsoll
