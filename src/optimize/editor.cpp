#include "optimize/editor.h"

#include <algorithm>
#include <utility>

#include "graph/sort.h"
#include "ops/registry.h"

namespace plimsoll {

EditorPlace::EditorPlace(Editor& editor, Graph& graph, std::string_view prefix, uint64_t order)
    : GraphBuilder(graph, prefix, resolve), editor_(editor), order_(order) {}

void EditorPlace::added(Edge&) {
  editor_.grow();
}

void EditorPlace::added(Node& node) {
  editor_.changed_ = true;
  editor_.grow();
  editor_.order_[node.id] = order_;
  for (Edge* input : node.inputs) editor_.add_use(input, node);
}

Editor::Editor(Graph& root, std::pmr::memory_resource* tables)
    : root_(root),
      memory_(tables != nullptr ? tables : own_.emplace(root.arena().budget()).resource()),
      graphs_(memory_),
      users_(memory_),
      output_uses_(memory_),
      dead_(memory_),
      order_(memory_),
      constants_(*this, root, "", UINT64_MAX) {
  root.for_each_graph([&](Graph& graph) { graphs_.push_back(&graph); });
  grow();
  for (Graph* graph : graphs_) {
    for (size_t i = 0; i < graph->nodes.size(); ++i) {
      Node* node = graph->nodes[i];
      order_[node->id] = i * 4 + 1;
      for (Edge* input : node->inputs) add_use(input, *node);
    }
    for (Edge* output : graph->outputs) ++output_uses_[output->id];
  }
}

void Editor::grow() {
  users_.resize(root_.edge_count());
  output_uses_.resize(root_.edge_count());
  order_.resize(root_.node_count());
  dead_.resize(root_.node_count());
}

void Editor::add_use(Edge* edge, Node& node) {
  if (edge != nullptr) users_[edge->id].nodes.push_back(&node);
}

void Editor::drop_use(Edge* edge, Node& node) {
  if (edge != nullptr) users_[edge->id].remove(node);
}

void Editor::Users::remove(const Node& node) {
  auto found = std::find(nodes.begin() + last, nodes.end(), &node);
  if (found == nodes.end()) found = std::find(nodes.begin(), nodes.begin() + last, &node);
  *found = nullptr;
  last = static_cast<uint32_t>(found - nodes.begin());
  ++gone;
}

void Editor::Users::tidy() {
  if (gone == 0) return;
  nodes.erase(std::remove(nodes.begin(), nodes.end(), nullptr), nodes.end());
  gone = last = 0;
}

// Removes the node if none of its outputs is used, then what only it used, and so on.
void Editor::bury(Node* node) {
  std::vector<Node*> stack = {node};
  while (!stack.empty()) {
    Node* next = stack.back();
    stack.pop_back();
    if (next == nullptr || dead_[next->id]) continue;
    const bool used = std::any_of(next->outputs.begin(), next->outputs.end(), [&](Edge* e) {
      return e != nullptr && e->producer == next && use_count(*e) > 0;
    });
    if (used) continue;
    dead_[next->id] = true;
    changed_ = true;
    for (Edge* input : next->inputs) {
      if (input == nullptr) continue;
      drop_use(input, *next);
      stack.push_back(input->producer);
    }
  }
}

Node* Editor::only_user(const Edge& edge) const {
  if (users_[edge.id].count() != 1) return nullptr;
  const std::span<Node* const> list = users(edge);
  if (output_uses_[edge.id] > 0 || list[0]->graph != edge.graph) return nullptr;
  return list[0];
}

void Editor::become(Node& node, std::string_view domain, std::string_view op_type,
                    std::span<Edge* const> inputs, std::span<const Attribute> attributes) {
  changed_ = true;
  const std::vector<Edge*> before(node.inputs.begin(), node.inputs.end());
  for (Edge* edge : inputs) add_use(edge, node);
  for (Edge* edge : before) drop_use(edge, node);
  // The same operator keeps the version it was written for, which is a local function's own.
  if (node.domain != domain || node.op_type != op_type) {
    node.domain = arena().copy(domain);
    node.op_type = arena().copy(op_type);
    node.opset = node.graph->opset(node.domain);
  }
  node.inputs = arena().copy(inputs);
  node.attributes = arena().copy(attributes);
  resolve(node, arena());
  for (Edge* edge : before) {
    if (edge != nullptr) bury(edge->producer);
  }
}

void Editor::set_input(Node& node, size_t i, Edge* edge) {
  changed_ = true;
  Edge* before = node.inputs[i];
  add_use(edge, node);
  drop_use(before, node);
  node.inputs[i] = edge;
  if (before != nullptr) bury(before->producer);
}

EditorPlace Editor::place_at(Node& place, uint64_t phase) {
  return {*this, *place.graph, place.name, order_[place.id] / 4 * 4 + phase};
}

Edge* Editor::insert_before(Node& place, std::string_view domain, std::string_view op_type,
                            std::initializer_list<Edge*> inputs, std::span<const Attribute> attributes) {
  const std::span<Edge* const> list(inputs.begin(), inputs.size());
  return before(place).emit(domain, op_type, list, attributes)->outputs[0];
}

Edge* Editor::insert_after(Node& place, std::string_view domain, std::string_view op_type,
                           std::initializer_list<Edge*> inputs, std::span<const Attribute> attributes,
                           Edge* output) {
  const std::span<Edge* const> list(inputs.begin(), inputs.size());
  if (output == nullptr) return after(place).emit(domain, op_type, list, attributes)->outputs[0];
  after(place).emit_into(std::span<Edge* const>(&output, 1), domain, op_type, list, attributes);
  return output;
}

Edge* Editor::renew_output(Node& node, size_t i) {
  changed_ = true;
  Edge* before = node.outputs[i];
  Edge* edge = node.graph->add_edge(fmt::format("{}/{}", before->name, node.graph->edge_count()));
  grow();
  edge->producer = &node;
  edge->facts = before->facts;
  node.outputs[i] = edge;
  before->producer = nullptr;
  return edge;
}

std::pmr::vector<Node*> Editor::take_users(const Edge& edge) {
  Users& users = users_[edge.id];
  users.tidy();
  return std::exchange(users.nodes, std::pmr::vector<Node*>(memory_));
}

bool Editor::replace(Edge& from, Edge& to) {
  Graph& graph = *from.graph;
  if (is_graph_output(from)) {
    // Whoever runs the graph knows the output by its edge: the producer of `to` writes `from`
    // instead, if it can.
    Node* maker = to.producer;
    if (maker == nullptr || maker->graph != &graph || is_graph_output(to)) return false;
    Node* old_maker = from.producer;
    *std::find(maker->outputs.begin(), maker->outputs.end(), &to) = &from;
    from.producer = maker;
    to.producer = nullptr;
    from.facts = to.facts;
    for (Node* user : take_users(to)) {
      std::replace(user->inputs.begin(), user->inputs.end(), &to, &from);
      if (user != old_maker) add_use(&from, *user);
    }
    if (old_maker != nullptr) {
      for (Edge*& output : old_maker->outputs) {
        if (output == &from) output = nullptr;
      }
      for (Edge*& input : old_maker->inputs) {
        if (input == &from) input = nullptr;
      }
      bury(old_maker);
    }
    changed_ = true;
    return true;
  }
  if (users_[from.id].count() == 0) return true;
  changed_ = true;
  for (Node* user : take_users(from)) {
    std::replace(user->inputs.begin(), user->inputs.end(), &from, &to);
    add_use(&to, *user);
  }
  bury(from.producer);
  return true;
}

void Editor::make_constant(Edge& edge, const TensorData& tensor) {
  changed_ = true;
  Node* maker = edge.producer;
  edge.producer = nullptr;
  edge.set_data(arena(), tensor);
  edge.facts.values.reset();
  edge.graph->initializers.push_back(&edge);
  if (maker == nullptr) return;
  for (Edge*& output : maker->outputs) {
    if (output == &edge) output = nullptr;
  }
  bury(maker);
}

bool Editor::finish() {
  if (!changed_) return false;
  for (Graph* graph : graphs_) {
    std::pmr::vector<Node*> kept(memory_);
    for (Node* node : graph->nodes) {
      if (!dead_[node->id]) kept.push_back(node);
    }
    std::stable_sort(kept.begin(), kept.end(),
                     [&](Node* a, Node* b) { return order_[a->id] < order_[b->id]; });
    std::copy(kept.begin(), kept.end(), graph->nodes.begin());
    graph->nodes.resize_down(kept.size());
  }
  // Sorting looks into the bodies of nodes: none of them may hold a dead one any more.
  for (Graph* graph : graphs_) sort_nodes(*graph, memory_);
  return true;
}

}  // namespace plimsoll
