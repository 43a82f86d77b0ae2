#include "train/stash.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "graph/bodies.h"
#include "graph/gradient.h"
#include "ops/registry.h"

namespace plimsoll {
namespace {

template <size_t N>
bool is_one_of(const Node& node, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), node.op_type) != names.end();
}

bool is_view(const Node& node) {
  constexpr std::array<std::string_view, 5> kViews = {"Reshape", "Squeeze", "Unsqueeze", "Flatten",
                                                      "Identity"};
  return node.domain.empty() && is_one_of(node, kViews);
}

// What a view looks at, as far as the forward part made it.
Edge* looked_at(Edge* edge) {
  while (edge->producer != nullptr && is_view(*edge->producer)) edge = edge->producer->inputs[0];
  return edge;
}

// By node id: what these edges need.
std::vector<bool> needed_nodes(const Graph& graph, std::span<Edge* const> edges) {
  std::vector<bool> needed(graph.edge_count(), false), nodes(graph.node_count(), false);
  for (const Edge* edge : edges) needed[edge->id] = true;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = *graph.nodes[n];
    if (std::none_of(node.outputs.begin(), node.outputs.end(),
                     [&](const Edge* edge) { return edge != nullptr && needed[edge->id]; }))
      continue;
    nodes[node.id] = true;
    for (const Edge* edge : node.inputs) {
      if (edge != nullptr) needed[edge->id] = true;
    }
    if (node.op->control_flow == nullptr) continue;
    for (const Edge* edge : captured_edges(node)) needed[edge->id] = true;
  }
  return nodes;
}

bool is_float(const Edge* edge) {
  const TypeInfo& type = edge->facts.type;
  return type.kind == ValueKind::kTensor && type.type == ElementType::kFloat;
}

// Sums of many, logarithms that are exponents later, numbers of a loss.
bool makes_exact(const Edge& edge) {
  constexpr std::array<std::string_view, 7> kExact = {
      "Log",     "LogSoftmax", "SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss", "CumSum",
      "CumProd", "Det"};
  const Node& node = *edge.producer;
  if (node.op_type.starts_with("Reduce") || is_one_of(node, kExact)) return true;
  return node.op_type.find("Normalization") != std::string_view::npos && node.outputs[0] != &edge;
}

// What two roundings would make equal, or apart; where a sample is taken; what a loss is made of.
bool reads_exactly(const Node& node) {
  constexpr std::array<std::string_view, 5> kComparisons = {"Equal", "Less", "Greater", "LessOrEqual",
                                                            "GreaterOrEqual"};
  constexpr std::array<std::string_view, 5> kExact = {
      "ClassLossGradient", "GridSampleGradient", "CumProdGradient", "DetGradient",
      "RecurrentGradient"};  // which goes through all steps again: roundings would add up
  if (is_one_of(node, kExact)) return true;
  if (node.op_type == "PoolGradient") return node.inputs.size() == 3;  // of a maximum
  if (node.op_type == "Cast") return !kFloatTypes.contains(node.outputs[0]->facts.type.type);
  if (!is_one_of(node, kComparisons)) return false;
  return std::none_of(node.inputs.begin(), node.inputs.end(),
                      [](const Edge* edge) { return edge->constant != nullptr; });
}

class StashFinder {
 public:
  StashFinder(const Graph& graph, std::span<Edge* const> loss, std::span<Edge* const> wanted)
      : graph_(graph),
        forward_(needed_nodes(graph, loss)),
        needed_(needed_nodes(graph, wanted)),
        number_(graph.edge_count(), kNone),
        exact_(graph.edge_count(), false) {}

  std::vector<Stash> run() {
    for (Node* node : graph_.nodes) {
      if (!needed_[node->id]) continue;
      for (Edge* edge : node->inputs) {
        if (edge != nullptr) read(*node, edge);
      }
      if (node->op->control_flow == nullptr) continue;
      for (Edge* edge : captured_edges(*node)) exact_[looked_at(edge)->id] = true;
    }
    std::erase_if(stashes_,
                  [&](const Stash& stash) { return stash.backward.empty() || exact_[stash.edge->id]; });
    return std::move(stashes_);
  }

 private:
  static constexpr uint32_t kNone = ~0u;

  void read(Node& node, Edge* edge) {
    Edge* made = looked_at(edge);
    if (made->producer == nullptr || !forward_[made->producer->id] || !is_float(made)) return;
    if (made->facts.constant != nullptr || made->facts.values.has_value()) return;
    uint32_t& number = number_[made->id];
    if (number == kNone) {
      number = static_cast<uint32_t>(stashes_.size());
      stashes_.push_back({made, {}, {}});
      if (makes_exact(*made)) exact_[made->id] = true;
    }
    const bool is_forward = forward_[node.id];
    std::vector<Node*>& readers = is_forward ? stashes_[number].forward : stashes_[number].backward;
    if (readers.empty() || readers.back() != &node) readers.push_back(&node);
    if (!is_forward && reads_exactly(node)) exact_[made->id] = true;
  }

  const Graph& graph_;
  const std::vector<bool> forward_, needed_;  // by node id
  std::vector<uint32_t> number_;              // by edge id
  std::vector<bool> exact_;                   // by edge id
  std::vector<Stash> stashes_;
};

// Nodes at the end of the graph, to be moved: of a version that is told for each.
class StashBuilder : public GraphBuilder {
 public:
  StashBuilder(Graph& graph, std::string_view origin)
      : GraphBuilder(graph, fmt::format("{}_stash", origin), resolve), origin_(origin) {}

  Edge* cast(Edge* edge, ElementType to) {
    opset_ = kGradientOpset;
    return op("Cast", {edge}, attributes().set("to", static_cast<int64_t>(to)));
  }
  Edge* view(const Node& like, Edge* edge) {
    opset_ = like.opset;
    std::vector<Edge*> inputs(like.inputs.begin(), like.inputs.end());
    inputs[0] = edge;
    return emit(like.domain, like.op_type, inputs, like.attributes)->outputs[0];
  }

 private:
  void added(Node& node) override {
    node.name = graph().arena().copy(fmt::format("{}_stash/{}_{}", origin_, node.op_type, node.id));
    node.opset = opset_;
  }
  std::string_view origin_;
  int opset_ = 0;
};

class Stasher {
 public:
  explicit Stasher(Graph& graph)
      : graph_(graph), order_(graph.nodes.begin(), graph.nodes.end()), place_(graph.node_count(), 0) {
    for (size_t n = 0; n < order_.size(); ++n) place_[order_[n]->id] = n;
    behind_.resize(order_.size());
    before_.resize(order_.size());
  }

  Edge* add(const Stash& stash) {
    size_t last = place_[stash.edge->producer->id], first = order_.size();
    for (const Node* node : stash.forward) last = std::max(last, place_[node->id]);
    for (const Node* node : stash.backward) first = std::min(first, place_[node->id]);
    StashBuilder build(graph_, stash.edge->name);
    Edge* rounded = build.cast(stash.edge, ElementType::kBFloat16);
    behind_[last].push_back(rounded->producer);
    std::map<const Edge*, Edge*> again = {{stash.edge, build.cast(rounded, ElementType::kFloat)}};
    before_[first].push_back(again.at(stash.edge)->producer);
    for (Node* node : stash.backward) {
      for (Edge*& edge : node->inputs) {
        if (edge != nullptr && looked_at(edge) == stash.edge) edge = seen_again(build, edge, first, again);
      }
    }
    return rounded;
  }

  void finish() {
    size_t n = 0;
    const auto put = [&](Node* node) { graph_.nodes[n++] = node; };
    for (size_t i = 0; i < order_.size(); ++i) {
      for (Node* node : before_[i]) put(node);
      put(order_[i]);
      for (Node* node : behind_[i]) put(node);
    }
  }

 private:
  Edge* seen_again(StashBuilder& build, Edge* edge, size_t first, std::map<const Edge*, Edge*>& again) {
    if (const auto found = again.find(edge); found != again.end()) return found->second;
    const Node& view = *edge->producer;
    Edge* made = build.view(view, seen_again(build, view.inputs[0], first, again));
    before_[first].push_back(made->producer);
    return again[edge] = made;
  }

  Graph& graph_;
  const std::vector<Node*> order_;
  std::vector<size_t> place_;                        // by node id
  std::vector<std::vector<Node*>> behind_, before_;  // by place: what is put there
};

}  // namespace

std::vector<Stash> find_stashes(const Graph& graph, std::span<Edge* const> loss,
                                std::span<Edge* const> wanted) {
  return StashFinder(graph, loss, wanted).run();
}

std::vector<Edge*> stash_in_bfloat16(Graph& graph, std::span<const Stash> stashes) {
  Stasher stasher(graph);
  std::vector<Edge*> rounded;
  for (const Stash& stash : stashes) rounded.push_back(stasher.add(stash));
  stasher.finish();
  return rounded;
}

}  // namespace plimsoll
