#include "prepare/lower.h"

#include <algorithm>
#include <memory_resource>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "memory/transient_memory.h"
#include "ops/registry.h"

namespace plimsoll {
namespace {

constexpr size_t kMaxDepth = 200;
constexpr size_t kMaxNodes = 1'000'000;

bool is_declared(const Function& function, std::string_view attribute) {
  const auto& names = function.attributes;
  const auto& defaults = function.attribute_defaults;
  return std::find(names.begin(), names.end(), attribute) != names.end() ||
         std::any_of(defaults.begin(), defaults.end(),
                     [&](const Attribute& a) { return a.name == attribute; });
}

class Inliner {
 public:
  explicit Inliner(Graph& root)
      : root_(root), memory_(root.arena().budget()), functions_(root), names_(memory_.resource()) {
    root.for_each_graph([&](Graph& graph) {
      remember(graph.inputs);
      remember(graph.initializers);
      for (Node* node : graph.nodes) {
        for (Edge* edge : node->outputs) {
          if (edge != nullptr) names_.insert(edge->name);
        }
      }
    });
  }

  void expand(Graph& graph) {
    const std::vector<Node*> before(graph.nodes.begin(), graph.nodes.end());
    std::vector<Node*> after;
    expand(graph, before, after);
    if (after == before) return;
    graph.nodes.clear();
    for (Node* node : after) graph.nodes.push_back(node);
    graph.sort();
  }

 private:
  using EdgeMap = std::unordered_map<const Edge*, Edge*>;

  // One call: who calls, and what the body's edges are called outside.
  struct Call {
    const Function& function;
    const Node& caller;
    EdgeMap edges;
  };

  void remember(const ArenaVector<Edge*>& edges) {
    for (const Edge* edge : edges) names_.insert(edge->name);
  }

  void expand(Graph& graph, const std::vector<Node*>& nodes, std::vector<Node*>& out) {
    for (Node* node : nodes) {
      const Function* function = functions_.find(*node);
      if (function != nullptr) {
        expand_call(graph, *node, *function, out);
        continue;
      }
      for (const Attribute& a : node->attributes) {
        if (a.graph != nullptr) expand(*a.graph);
        for (Graph* body : a.graphs) expand(*body);
      }
      out.push_back(node);
    }
  }

  void expand_call(Graph& graph, Node& caller, const Function& function, std::vector<Node*>& out) {
    if (std::find(active_.begin(), active_.end(), &function) != active_.end())
      fail(ErrorCode::kInvalidModel, "{}: expected functions that end, found '{}' calling itself",
           caller.label(), function.name);
    if (active_.size() >= kMaxDepth)
      fail(ErrorCode::kInvalidModel, "{}: expected at most {} functions inside each other", caller.label(),
           kMaxDepth);
    for (const Attribute& a : caller.attributes) {
      if (!is_declared(function, a.name))
        root_.warn(fmt::format("{}: unknown attribute '{}' of function '{}'", caller.label(), a.name,
                               function.name));
    }
    active_.push_back(&function);
    Call call{function, caller, {}};
    std::vector<Node*> nodes;
    const std::vector<PassedOn> passed = bind(call);
    copy_nodes(*function.body, graph, call, nodes);
    for (const PassedOn& p : passed) nodes.push_back(pass_on(p, graph, call));
    expand(graph, nodes, out);
    active_.pop_back();
  }

  // An output that no node of the body makes for it alone: an input, a constant, or a value that two
  // outputs share.
  struct PassedOn {
    Edge *inner, *outer;
  };

  // Inputs and outputs of the body become the caller's.
  std::vector<PassedOn> bind(Call& call) {
    std::vector<PassedOn> passed;
    const Graph& body = *call.function.body;
    const Node& caller = call.caller;
    if (caller.inputs.size() > body.inputs.size() || caller.outputs.size() > body.outputs.size())
      fail(ErrorCode::kInvalidModel,
           "{}: expected at most {} inputs and {} outputs, as '{}' has, found {} and {}", caller.label(),
           body.inputs.size(), body.outputs.size(), call.function.name, caller.inputs.size(),
           caller.outputs.size());
    for (size_t i = 0; i < body.inputs.size(); ++i) call.edges[body.inputs[i]] = caller.input(i);
    for (size_t i = 0; i < caller.outputs.size(); ++i) {
      Edge* outer = caller.outputs[i];
      Edge* inner = body.outputs[i];
      if (outer == nullptr) continue;
      const bool is_own = inner->producer != nullptr && call.edges.emplace(inner, outer).second;
      if (!is_own) passed.push_back({inner, outer});
    }
    return passed;
  }

  Node* pass_on(const PassedOn& passed, Graph& graph, Call& call) {
    Edge* in[] = {map(passed.inner, graph, call)};
    Edge* out[] = {passed.outer};
    if (in[0] == nullptr)
      fail(ErrorCode::kInvalidModel, "{}: output '{}' is an input that the caller leaves out",
           call.caller.label(), passed.outer->name);
    return graph.add_node("", "Identity", fmt::format("{}/output", call.caller.name), in, out);
  }

  void copy_nodes(const Graph& body, Graph& graph, Call& call, std::vector<Node*>& nodes) {
    for (const Edge* edge : body.initializers) {
      Edge* copy = map(edge, graph, call);
      copy->persistent = edge->persistent;
      copy->account = edge->account;
      if (edge->data != nullptr) copy->set_data(graph.arena(), *edge->data);
      graph.initializers.push_back(copy);
    }
    for (const Node* node : body.nodes) {
      count_node(call);
      nodes.push_back(copy_node(*node, graph, call));
    }
  }

  void count_node(const Call& call) {
    if (++node_count_ > kMaxNodes)
      fail(ErrorCode::kInvalidModel, "{}: functions expand to more than {} nodes", call.caller.label(),
           kMaxNodes);
  }

  Node* copy_node(const Node& node, Graph& graph, Call& call) {
    std::vector<Edge*> inputs, outputs;
    for (const Edge* edge : node.inputs) inputs.push_back(map(edge, graph, call));
    for (const Edge* edge : node.outputs) outputs.push_back(map(edge, graph, call));
    std::vector<Attribute> attributes;
    for (const Attribute& a : node.attributes) copy_attribute(a, graph, call, attributes);
    Node* copy = graph.add_node(node.domain, node.op_type, fmt::format("{}/{}", call.caller.name, node.name),
                                inputs, outputs, attributes);
    copy->opset = opset_of(node, call.function);
    copy->overload = node.overload;
    return copy;
  }

  int opset_of(const Node& node, const Function& function) const {
    for (const OpsetImport& import : function.opsets) {
      if (import.domain == node.domain || (node.domain.empty() && import.domain == "ai.onnx"))
        return static_cast<int>(import.version);
    }
    return node.opset != 0 ? node.opset : root_.opset(node.domain);
  }

  void copy_attribute(const Attribute& a, Graph& graph, Call& call, std::vector<Attribute>& out) {
    if (!a.reference.empty()) {
      const Attribute* given = call.caller.attribute(a.reference);
      for (const Attribute& fallback : call.function.attribute_defaults) {
        if (given == nullptr && fallback.name == a.reference) given = &fallback;
      }
      if (given == nullptr) return;
      out.push_back(*given);
      out.back().name = a.name;
      if (given->graph != nullptr) out.back().graph = adopt(*given->graph, graph, call);
      std::span<Graph*> bodies = graph.arena().array<Graph*>(given->graphs.size());
      for (size_t i = 0; i < bodies.size(); ++i) bodies[i] = adopt(*given->graphs[i], graph, call);
      out.back().graphs = bodies;
      return;
    }
    Attribute copy = a;
    if (a.graph != nullptr) copy.graph = copy_graph(*a.graph, graph, call);
    std::span<Graph*> bodies = graph.arena().array<Graph*>(a.graphs.size());
    for (size_t i = 0; i < bodies.size(); ++i) bodies[i] = copy_graph(*a.graphs[i], graph, call);
    copy.graphs = bodies;
    out.push_back(copy);
  }

  // A body that the caller gives moves to where the function uses it first; elsewhere there is a copy.
  Graph* adopt(Graph& body, Graph& outer, Call& call) {
    EdgeMap own;
    if (!adopted_.insert(&body).second) return duplicate(body, outer, call, own);
    body.set_outer(outer);
    return &body;
  }

  // What the body makes is made anew; what it sees of the graphs around it stays.
  Graph* duplicate(const Graph& body, Graph& outer, Call& call, EdgeMap& own) {
    Graph* copy = outer.arena().make<Graph>(outer);
    copy->name = body.name;
    const auto make = [&](const Edge* edge) {
      Edge*& made = own[edge];
      if (made != nullptr) return made;
      made = copy->add_edge(unique(call, edge->name));
      names_.insert(made->name);
      made->facts = edge->facts;
      return made;
    };
    for (const Edge* edge : body.inputs) copy->inputs.push_back(make(edge));
    for (const Edge* edge : body.initializers) {
      Edge* made = make(edge);
      made->persistent = edge->persistent;
      made->account = edge->account;
      if (edge->data != nullptr) made->set_data(copy->arena(), *edge->data);
      copy->initializers.push_back(made);
    }
    for (const Node* node : body.nodes) {
      for (const Edge* edge : node->outputs) {
        if (edge != nullptr) make(edge);
      }
    }
    for (const Node* node : body.nodes) duplicate_node(*node, *copy, call, own);
    for (Edge* edge : body.outputs) copy->outputs.push_back(own.count(edge) > 0 ? own[edge] : edge);
    return copy;
  }

  void duplicate_node(const Node& node, Graph& graph, Call& call, EdgeMap& own) {
    count_node(call);
    const auto mapped = [&](std::span<Edge* const> edges) {
      std::vector<Edge*> result;
      for (Edge* edge : edges) result.push_back(own.count(edge) > 0 ? own[edge] : edge);
      return result;
    };
    std::vector<Attribute> attributes(node.attributes.begin(), node.attributes.end());
    for (Attribute& a : attributes) {
      if (a.graph != nullptr) a.graph = duplicate(*a.graph, graph, call, own);
      std::span<Graph*> bodies = graph.arena().array<Graph*>(a.graphs.size());
      for (size_t i = 0; i < bodies.size(); ++i) bodies[i] = duplicate(*a.graphs[i], graph, call, own);
      a.graphs = bodies;
    }
    Node* copy = graph.add_node(node.domain, node.op_type, fmt::format("{}/{}", call.caller.name, node.name),
                                mapped(node.inputs), mapped(node.outputs), attributes);
    copy->opset = node.opset;
    copy->overload = node.overload;
  }

  Graph* copy_graph(const Graph& body, Graph& outer, Call& call) {
    Graph* copy = outer.arena().make<Graph>(outer);
    copy->name = body.name;
    for (const Edge* edge : body.inputs) {
      Edge* input = map(edge, *copy, call);
      input->facts = edge->facts;
      copy->inputs.push_back(input);
    }
    std::vector<Node*> nodes;
    copy_nodes(body, *copy, call, nodes);
    for (const Edge* edge : body.outputs) {
      Edge* output = map(edge, *copy, call);
      if (output == nullptr)
        fail(ErrorCode::kInvalidModel, "{}: a body's output is an input that the caller leaves out",
             call.caller.label());
      copy->outputs.push_back(output);
    }
    return copy;
  }

  // What an edge of the function is in the caller's graph; a new edge the first time.
  Edge* map(const Edge* edge, Graph& graph, Call& call) {
    if (edge == nullptr) return nullptr;
    const auto found = call.edges.find(edge);
    if (found != call.edges.end()) return found->second;
    Edge* copy = graph.add_edge(unique(call, edge->name));
    call.edges[edge] = copy;
    names_.insert(copy->name);
    return copy;
  }

  std::string unique(const Call& call, std::string_view name) {
    std::string candidate = fmt::format("{}/{}", call.caller.name, name);
    for (int i = 1; names_.count(candidate) > 0; ++i)
      candidate = fmt::format("{}/{}_{}", call.caller.name, name, i);
    return candidate;
  }

  Graph& root_;
  TransientMemory memory_;
  const FunctionIndex functions_;
  std::vector<const Function*> active_;
  std::pmr::unordered_set<std::string_view> names_;
  std::unordered_set<const Graph*> adopted_;
  size_t node_count_ = 0;
};

// ONNX leaves it to the runtime who wins; ours is ONNX Runtime's way.
bool is_shadowed(const Function& f) {
  return f.overload.empty() && find_op(f.domain, f.name) != nullptr;
}

}  // namespace

FunctionIndex::FunctionIndex(const Graph& root) {
  for (const Function& f : root.functions) {
    if (!is_shadowed(f)) functions_.insert_or_assign(Name(f.domain, f.name, f.overload), &f);
  }
}

const Function* FunctionIndex::find(const Node& node) const {
  const auto found = functions_.find(Name(node.domain, node.op_type, node.overload));
  return found == functions_.end() ? nullptr : found->second;
}

void inline_functions(Graph& root) {
  if (root.functions.empty()) return;
  for (const Function& f : root.functions) {
    if (is_shadowed(f))
      root.warn(fmt::format(
          "function '{}' of domain '{}': expected a name that no operator has; the operator is used", f.name,
          f.domain.empty() ? "ai.onnx" : f.domain));
  }
  Inliner(root).expand(root);
  root.functions = {};
}

}  // namespace plimsoll
