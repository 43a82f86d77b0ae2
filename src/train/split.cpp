#include "train/split.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/bodies.h"
#include "graph/gradient.h"
#include "train/differentiate.h"
#include "train/losses.h"

namespace plimsoll {
namespace {

template <typename F>
void for_each_source(const Node& node, F f) {
  for (Edge* edge : node.inputs) {
    if (edge != nullptr) f(edge);
  }
  if (node.op->control_flow == nullptr) return;
  for (Edge* edge : captured_edges(node)) f(edge);
}

bool is_real(const Edge& edge) {
  const TypeInfo& type = edge.facts.type;
  return type.kind == ValueKind::kTensor && kFloatTypes.contains(type.type);
}

// Null if the model does not have it.
Edge* find_input(const Graph& graph, const std::string& name) {
  const auto found = std::find_if(graph.inputs.begin(), graph.inputs.end(),
                                  [&](const Edge* edge) { return edge->name == name; });
  return found == graph.inputs.end() ? nullptr : *found;
}

// Which edges change with an x.
std::vector<bool> active_edges(const Graph& graph, std::span<Edge* const> xs) {
  std::vector<bool> active(graph.edge_count(), false);
  for (const Edge* x : xs) active[x->id] = true;
  for (const Node* node : graph.nodes) {
    if (node->op->gradient == no_gradient) continue;
    bool changes = false;
    for_each_source(*node, [&](const Edge* edge) { changes |= active[edge->id]; });
    for (const Edge* edge : node->outputs) {
      if (changes && edge != nullptr && is_real(*edge)) active[edge->id] = true;
    }
  }
  return active;
}

// Running statistics as PyTorch has them.
class Statistics {
 public:
  Statistics(Graph& graph, DifferentiatedModel& model) : graph_(graph), model_(model) {}

  void run() {
    const size_t count = graph_.nodes.size();
    for (size_t n = 0; n < count; ++n) {
      Node& node = *graph_.nodes[n];
      const Attribute* mode = node.attribute("training_mode");
      if (node.op_type == "BatchNormalization" && mode != nullptr && mode->i != 0) update(node);
    }
    for (const auto& [input, next] : next_) {
      model_.statistics.emplace_back(input->name, fmt::format("{}.next", input->name));
      Edge* output = graph_.add_edge(model_.statistics.back().second);
      TrainBuilder(graph_, "statistics").emit_into({&output, 1}, "", "Identity", {&next, 1}, {});
      graph_.outputs.push_back(output);
    }
  }

 private:
  void update(Node& node) {
    std::vector<Edge*> outputs(node.outputs.begin(), node.outputs.end());
    outputs.resize(3);
    for (const size_t i : {1, 2}) {
      Edge* input = node.inputs[i + 2];
      if (std::find(graph_.inputs.begin(), graph_.inputs.end(), input) == graph_.inputs.end()) return;
      if (outputs[i] != nullptr) continue;
      outputs[i] = graph_.add_edge(fmt::format("{}/statistics_{}", node.name, i));
      outputs[i]->producer = &node;
      outputs[i]->facts.type = input->facts.type;
    }
    node.outputs = graph_.arena().copy(outputs);
    for (const size_t i : {1, 2}) chain(node, i);
  }

  // A module that is called twice changes what the first call left.
  void chain(Node& node, size_t output) {
    Edge* input = node.inputs[output + 2];
    auto known = std::find_if(next_.begin(), next_.end(), [&](const auto& n) { return n.first == input; });
    Edge* before = known == next_.end() ? input : known->second;
    std::vector<Edge*> inputs(node.inputs.begin(), node.inputs.end());
    inputs[output + 2] = before;
    node.inputs = graph_.arena().copy(inputs);
    Edge* next = node.outputs[output];
    if (output == 2) next = of_samples(node, before, next);
    if (known == next_.end()) {
      next_.emplace_back(input, next);
    } else {
      known->second = next;
    }
  }

  // next = m * before + (1 - m) * variance: with n / (n - 1) times the variance.
  Edge* of_samples(const Node& node, Edge* before, Edge* next) {
    const TypeInfo& x = node.inputs[0]->facts.type;
    const Dim all = x.ranked ? product(x.dims) : Dim(0);
    const Dim channels = x.ranked && x.rank() > 1 ? x.dims[1] : Dim(1);
    if (!all.is_constant() || !channels.is_constant()) return next;  // nobody runs such a graph
    const int64_t n = channels.value() == 0 ? 0 : all.value() / channels.value();
    if (n < 2)
      fail(ErrorCode::kInvalidArgument,
           "{}: expected more than 1 value per channel when training, found an input of {}", node.label(),
           to_string(x));
    const Attribute* momentum = node.attribute("momentum");
    const double m = momentum == nullptr ? 0.9 : double{momentum->f};
    const double factor = static_cast<double>(n) / static_cast<double>(n - 1);
    TrainBuilder build(graph_, node.name);
    const ElementType type = before->facts.type.type;
    Edge* scaled = build.op("Mul", {next, real_scalar(build, type, factor)});
    Edge* kept = build.op("Mul", {before, real_scalar(build, type, m * (1 - factor))});
    return build.op("Add", {scaled, kept});
  }

  Graph& graph_;
  DifferentiatedModel& model_;
  std::vector<std::pair<Edge*, Edge*>> next_;
};

void add_gradients(Graph& graph, DifferentiatedModel& model, const std::vector<std::string>& names) {
  std::vector<Edge*> xs;
  model.gradients.assign(names.size(), "");
  for (const std::string& name : names) {
    if (Edge* x = find_input(graph, name)) xs.push_back(x);
  }
  const std::vector<bool> active = active_edges(graph, xs);
  std::vector<Cotangent> ys;
  for (size_t i = 0; i < model.outputs; ++i) {
    Edge* y = graph.outputs[i];
    model.differentiable.push_back(active[y->id]);
    if (!active[y->id]) continue;
    model.cotangents.push_back(fmt::format("{}_grad#{}", y->name, i));
    Edge* given = graph.add_edge(model.cotangents.back());
    given->facts.type = y->facts.type;
    graph.inputs.push_back(given);
    ys.push_back({y, given});
  }
  if (xs.empty()) return;
  const std::vector<Edge*> gradients = differentiate(graph, ys, xs);
  for (size_t i = 0; i < xs.size(); ++i) {
    if (gradients[i] == nullptr) continue;
    const auto place = std::find(names.begin(), names.end(), xs[i]->name) - names.begin();
    std::string& name = model.gradients[static_cast<size_t>(place)];
    name = fmt::format("{}_grad", xs[i]->name);
    Edge* output = graph.add_edge(name);
    TrainBuilder(graph, "gradient").emit_into({&output, 1}, "", "Identity", {&gradients[i], 1}, {});
    graph.outputs.push_back(output);
  }
}

constexpr std::array<std::string_view, 5> kViews = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"};
constexpr std::array<std::string_view, 9> kMovements = {"Transpose", "Slice",  "Concat", "Cast", "Expand",
                                                        "Split",     "Gather", "Tile",   "Where"};

bool is_one_of(const Node& node, std::span<const std::string_view> names) {
  return node.domain.empty() && std::find(names.begin(), names.end(), node.op_type) != names.end();
}

}  // namespace

int64_t stashed_bytes(const Facts& facts) {
  if (!facts.is_concrete()) return 0;
  int64_t bits = element_bits(facts.type.type);
  for (const Dim d : facts.type.dims) bits = checked_mul(bits, d.value());
  return (bits + 7) / 8;
}

DifferentiatedModel differentiate_model(Graph& graph, const std::vector<std::string>& xs) {
  DifferentiatedModel model;
  model.inputs = graph.inputs.size();
  model.outputs = graph.outputs.size();
  graph.for_each_graph([&](Graph& inner) {
    for (const Node* node : inner.nodes) model.draws |= !node->op->deterministic;
  });
  Statistics(graph, model).run();
  graph.sort();
  add_gradients(graph, model, xs);
  graph.sort();
  return model;
}

ModelSplit::ModelSplit(const Graph& graph, const DifferentiatedModel& model)
    : graph_(graph),
      model_(model),
      forward_{std::vector<bool>(graph.node_count(), false), std::vector<bool>(graph.edge_count(), false)},
      available_(graph.edge_count(), false),
      rounds_(graph.node_count(), false) {
  std::vector<bool> needed(graph.edge_count(), false);
  for (size_t i = 0; i < model.outputs + model.statistics.size(); ++i) needed[graph.outputs[i]->id] = true;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = *graph.nodes[n];
    const auto is_needed = [&](const Edge* edge) { return edge != nullptr && needed[edge->id]; };
    if (std::none_of(node.outputs.begin(), node.outputs.end(), is_needed)) continue;
    forward_.nodes[node.id] = true;
    for_each_source(node, [&](const Edge* edge) { needed[edge->id] = true; });
  }
  for (const Node* node : graph.nodes) {
    if (forward_.nodes[node->id] || !is_rounding(*node)) continue;
    const Node* rounded = node->inputs[0]->producer;
    rounds_[node->id] = forward_.nodes[node->id] = rounded != nullptr && forward_.nodes[rounded->id];
  }
  for (const Node* node : graph.nodes) {
    if (!is_one_of(*node, kViews) && !is_one_of(*node, kMovements)) continue;
    const auto is_there = [&](const Edge* edge) {
      return edge == nullptr || edge->producer == nullptr || available_[edge->id];
    };
    if (!std::all_of(node->inputs.begin(), node->inputs.end(), is_there)) continue;
    for (const Edge* edge : node->outputs) {
      if (edge != nullptr) available_[edge->id] = true;
    }
  }
  for (const Edge* edge : stashed(std::vector<bool>(graph.node_count(), false)))
    forward_.stashed[edge->id] = true;
}

bool ModelSplit::is_free(const Node& node) const {
  if (is_one_of(node, kViews)) return true;
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](const Edge* edge) { return edge != nullptr && available_[edge->id]; });
}

std::vector<Node*> ModelSplit::backward_nodes(const std::vector<bool>& again,
                                              std::vector<Edge*>& stashed) const {
  std::vector<bool> needed(graph_.edge_count(), false), runs(graph_.node_count(), false);
  const size_t first = model_.outputs + model_.statistics.size();
  const auto need = [&](Edge* edge) {
    const Node* producer = edge->producer;
    if (needed[edge->id] || producer == nullptr) return;
    needed[edge->id] = true;
    if (forward_.nodes[producer->id] && !again[producer->id] && !is_free(*producer)) stashed.push_back(edge);
  };
  for (size_t i = first; i < graph_.outputs.size(); ++i) need(graph_.outputs[i]);
  for (size_t n = graph_.nodes.size(); n-- > 0;) {
    const Node& node = *graph_.nodes[n];
    if (forward_.nodes[node.id] && !again[node.id] && !is_free(node)) continue;
    const auto is_needed = [&](const Edge* edge) { return edge != nullptr && needed[edge->id]; };
    if (std::none_of(node.outputs.begin(), node.outputs.end(), is_needed)) continue;
    runs[node.id] = true;
    for_each_source(node, need);
  }
  std::vector<Node*> nodes;
  for (Node* node : graph_.nodes) {
    if (runs[node->id]) nodes.push_back(node);
  }
  std::reverse(stashed.begin(), stashed.end());
  return nodes;
}

std::vector<Edge*> ModelSplit::stashed(const std::vector<bool>& again) const {
  std::vector<Edge*> edges;
  backward_nodes(again, edges);
  return edges;
}

namespace {

void set_nodes(Graph& graph, std::span<Node* const> nodes) {
  std::copy(nodes.begin(), nodes.end(), graph.nodes.begin());
  graph.nodes.resize_down(nodes.size());
}

// Initializers that nothing reads any more are not loaded.
void drop_unused(Graph& graph) {
  const std::vector<int> uses = count_uses(graph);
  size_t kept = 0;
  for (Edge* edge : graph.initializers) {
    if (uses[edge->id] > 0) graph.initializers[kept++] = edge;
  }
  graph.initializers.resize_down(kept);
}

void keep_read_inputs(Graph& graph) {
  const std::vector<int> uses = count_uses(graph);
  size_t kept = 0;
  for (Edge* edge : graph.inputs) {
    if (uses[edge->id] > 0) graph.inputs[kept++] = edge;
  }
  graph.inputs.resize_down(kept);
}

}  // namespace

std::vector<std::string> ModelSplit::keep(Graph& graph, ModelPart part,
                                          const std::vector<bool>& again) const {
  std::vector<Edge*> edges;
  const std::vector<Node*> backward = backward_nodes(again, edges);
  const std::unordered_set<const Edge*> outputs(
      graph.outputs.begin(), graph.outputs.begin() + static_cast<ptrdiff_t>(model_.outputs));
  std::vector<std::string> names;
  for (size_t i = 0; i < edges.size(); ++i) {
    if (outputs.count(edges[i]) == 0) edges[i]->name = graph.arena().copy(fmt::format("stash.{}", i));
    names.emplace_back(edges[i]->name);
  }
  const size_t first_gradient = model_.outputs + model_.statistics.size();
  if (part == ModelPart::kForward) {
    graph.outputs.resize_down(first_gradient);
    for (Edge* edge : edges) {
      if (outputs.count(edge) == 0) graph.outputs.push_back(edge);
    }
    std::vector<Node*> nodes;
    for (Node* node : graph.nodes) {
      // What was rounded for nobody, because it is made again, is not.
      const bool for_nobody =
          rounds_[node->id] && std::find(edges.begin(), edges.end(), node->outputs[0]) == edges.end();
      if (forward_.nodes[node->id] && !for_nobody) nodes.push_back(node);
    }
    set_nodes(graph, nodes);
    graph.inputs.resize_down(model_.inputs);
  } else {
    std::copy(graph.outputs.begin() + static_cast<ptrdiff_t>(first_gradient), graph.outputs.end(),
              graph.outputs.begin());
    graph.outputs.resize_down(graph.outputs.size() - first_gradient);
    set_nodes(graph, backward);
    for (Edge* edge : edges) {
      const TypeInfo type = edge->facts.type;
      edge->producer = nullptr;
      edge->facts = Facts{};
      edge->facts.type = type;
      graph.inputs.push_back(edge);
    }
  }
  keep_read_inputs(graph);
  drop_unused(graph);
  return names;
}

}  // namespace plimsoll
