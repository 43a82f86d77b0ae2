#include "train/differentiate.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "base/fail.h"
#include "graph/bodies.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "memory/transient_memory.h"
#include "ops/registry.h"

namespace plimsoll {
namespace {

// Names nodes after the one that they are the gradient of.
class BackwardBuilder : public GraphBuilder {
 public:
  BackwardBuilder(Graph& graph, std::string_view origin)
      : GraphBuilder(graph, fmt::format("{}_grad", origin), resolve), origin_(origin) {}

 private:
  void added(Node& node) override {
    node.name = graph().arena().copy(fmt::format("{}_grad/{}_{}", origin_, node.op_type, node.id));
    if (node.domain.empty()) node.opset = kGradientOpset;
  }

  std::string_view origin_;
};

bool is_real(const Edge* edge) {
  const TypeInfo& type = edge->facts.type;
  return type.kind == ValueKind::kTensor && kFloatTypes.contains(type.type);
}

class Differentiation : public BodyDifferentiator {
 public:
  explicit Differentiation(Graph& graph)
      : graph_(graph),
        memory_(graph.arena().budget()),
        active_(graph.edge_count(), false, memory_.resource()),
        leaf_(graph.edge_count(), false, memory_.resource()),
        needed_(graph.edge_count(), false, memory_.resource()),
        gradients_(graph.edge_count(), nullptr, memory_.resource()),
        forward_(graph.nodes.begin(), graph.nodes.end(), memory_.resource()),
        nodes_before_(graph.nodes.size()),
        constants_before_(graph.root().initializers.size()) {}

  std::vector<Edge*> run(std::span<const Cotangent> ys, std::span<Edge* const> xs) {
    for (Edge* x : xs) check(x, "differentiated by");
    for (const Cotangent& y : ys) check(y.edge, "differentiated");
    for (Edge* x : xs) active_[x->id] = leaf_[x->id] = true;
    for (const Node* node : forward_) spread(*node);
    for (const Cotangent& y : ys) needed_[y.edge->id] = true;
    for (size_t i = forward_.size(); i-- > 0;) need(*forward_[i]);
    refuse_missing();
    for (const Cotangent& y : ys) start(y);
    for (size_t i = forward_.size(); i-- > 0;) {
      if (is_on_the_way(*forward_[i])) build(*forward_[i]);
    }
    refuse_missing();
    std::vector<Edge*> result;
    for (Edge* x : xs) result.push_back(gradients_[x->id]);
    return result;
  }

  std::vector<Edge*> differentiate(Graph& body, std::span<Edge* const> ys, std::span<Edge* const> of_ys,
                                   std::span<Edge* const> xs) override {
    std::vector<Cotangent> cotangents;
    for (size_t i = 0; i < ys.size(); ++i) cotangents.push_back({ys[i], of_ys[i]});
    return Differentiation(body).run(cotangents, xs);
  }

 private:
  static void check(const Edge* edge, const char* what) {
    if (!is_real(edge))
      fail(ErrorCode::kInvalidArgument, "'{}': expected floats to be {}, found {}", edge->name, what,
           to_string(edge->facts.type));
  }

  template <typename F>
  static void for_each_source(const Node& node, F f) {
    for (Edge* edge : node.inputs) {
      if (edge != nullptr) f(edge);
    }
    if (node.op->control_flow == nullptr) return;
    for (Edge* edge : captured_edges(node)) f(edge);
  }

  // An edge is active if it changes with an x.
  void spread(const Node& node) {
    if (node.op->gradient == no_gradient) return;
    bool changes = false;
    for_each_source(node, [&](const Edge* edge) { changes |= active_[edge->id]; });
    if (!changes) return;
    for (const Edge* edge : node.outputs) {
      if (edge != nullptr && is_real(edge)) active_[edge->id] = true;
    }
  }

  bool is_on_the_way(const Node& node) const {
    return node.op->gradient != no_gradient &&
           std::any_of(node.outputs.begin(), node.outputs.end(), [&](const Edge* edge) {
             return edge != nullptr && active_[edge->id] && needed_[edge->id] && !leaf_[edge->id];
           });
  }

  void need(const Node& node) {
    if (!is_on_the_way(node)) return;
    for_each_source(node, [&](const Edge* edge) {
      if (active_[edge->id]) needed_[edge->id] = true;
    });
    if (node.op->gradient == nullptr) missing_.push_back(node.label());
  }

  // The Error that tells all of them; the graph is as it was.
  void refuse_missing() {
    if (missing_.empty()) return;
    graph_.nodes.resize_down(nodes_before_);
    graph_.root().initializers.resize_down(constants_before_);
    std::reverse(missing_.begin(), missing_.end());
    std::string list;
    for (const std::string& item : missing_) list += (list.empty() ? "" : "; ") + item;
    fail(ErrorCode::kNotImplemented, "without a gradient: {}", list);
  }

  void start(const Cotangent& y) {
    if (!active_[y.edge->id]) return;
    Edge* gradient = y.gradient;
    BackwardBuilder build(graph_, y.edge->name);
    if (gradient == nullptr) {
      const TypeInfo& type = y.edge->facts.type;
      gradient = real_scalar(build, type.type, 1);
      if (!type.ranked || type.rank() > 0) gradient = build.op("Expand", {gradient, shape_of(build, y.edge)});
    }
    add(build, y.edge, gradient);
  }

  void add(GraphBuilder& build, const Edge* edge, Edge* gradient) {
    Edge*& sum = gradients_[edge->id];
    sum = sum == nullptr ? gradient : build.op("Add", {sum, gradient});
  }

  void build(const Node& node) {
    std::vector<Edge*> of_outputs, of_inputs(node.inputs.size());
    for (const Edge* edge : node.outputs)
      of_outputs.push_back(edge == nullptr || leaf_[edge->id] ? nullptr : gradients_[edge->id]);
    if (std::all_of(of_outputs.begin(), of_outputs.end(), [](Edge* e) { return e == nullptr; })) return;
    const auto wanted = std::make_unique<bool[]>(node.inputs.size());
    for (size_t i = 0; i < node.inputs.size(); ++i)
      wanted[i] = node.inputs[i] != nullptr && active_[node.inputs[i]->id];
    std::vector<Edge*> captured;
    if (node.op->control_flow != nullptr) captured = captured_edges(node);
    std::erase_if(captured, [&](const Edge* edge) { return !active_[edge->id]; });
    std::vector<Edge*> of_captured(captured.size());
    const std::vector<Facts> inputs = facts_of_edges(node.inputs);
    std::vector<Facts> outputs = facts_of_edges(node.outputs);
    BackwardBuilder builder(graph_, node.name);
    GradientContext context(node, inputs, outputs, builder, of_outputs, {wanted.get(), node.inputs.size()},
                            of_inputs, {this, captured, of_captured});
    try {
      node.op->gradient(context);
    } catch (const Error& error) {
      missing_.push_back(error.what());
    }
    for (size_t i = 0; i < of_inputs.size(); ++i) give(builder, node, node.inputs[i], of_inputs[i]);
    for (size_t i = 0; i < captured.size(); ++i) give(builder, node, captured[i], of_captured[i]);
  }

  void give(GraphBuilder& build, const Node& node, const Edge* edge, Edge* gradient) {
    if (gradient == nullptr) return;
    check_like(node, edge->facts.type, gradient->facts.type);
    add(build, edge, gradient);
  }

  // An operator that gives a gradient of another type or shape is a mistake of ours.
  static void check_like(const Node& node, const TypeInfo& type, const TypeInfo& found) {
    bool fits = type.type == found.type && (!type.ranked || !found.ranked || type.rank() == found.rank());
    for (size_t i = 0; fits && type.ranked && found.ranked && i < type.rank(); ++i)
      fits = !type.dims[i].is_constant() || !found.dims[i].is_constant() || type.dims[i] == found.dims[i];
    if (!fits)
      throw std::logic_error(
          fmt::format("{}: the gradient of {} is {}", node.label(), to_string(type), to_string(found)));
  }

  Graph& graph_;
  TransientMemory memory_;
  std::pmr::vector<bool> active_, leaf_, needed_;  // by edge
  std::pmr::vector<Edge*> gradients_;              // by edge
  const std::pmr::vector<Node*> forward_;
  const size_t nodes_before_, constants_before_;
  std::vector<std::string> missing_;
};

}  // namespace

std::vector<Edge*> differentiate(Graph& graph, std::span<const Cotangent> ys, std::span<Edge* const> xs) {
  return Differentiation(graph).run(ys, xs);
}

Edge* zeros_like(Graph& graph, Edge* edge) {
  BackwardBuilder build(graph, edge->name);
  Edge* zero = real_scalar(build, edge->facts.type.type, 0);
  const TypeInfo& type = edge->facts.type;
  return type.ranked && type.rank() == 0 ? zero : build.op("Expand", {zero, shape_of(build, edge)});
}

}  // namespace plimsoll
