#include "optimize/editor.h"

#include <algorithm>

#include "ops/invoke.h"
#include "ops/registry.h"

namespace plimsoll {

Attribute& AttributeList::at(std::string_view name, AttributeType type) {
  erase(name);
  Attribute& attribute = list_.emplace_back();
  attribute.name = arena_.copy(name);
  attribute.type = type;
  return attribute;
}
AttributeList& AttributeList::set(std::string_view name, int64_t value) {
  at(name, AttributeType::kInt).i = value;
  return *this;
}
AttributeList& AttributeList::set(std::string_view name, float value) {
  at(name, AttributeType::kFloat).f = value;
  return *this;
}
AttributeList& AttributeList::set(std::string_view name, std::string_view value) {
  at(name, AttributeType::kString).s = arena_.copy(value);
  return *this;
}
AttributeList& AttributeList::set(std::string_view name, std::span<const int64_t> values) {
  at(name, AttributeType::kInts).ints = arena_.copy(values);
  return *this;
}
AttributeList& AttributeList::set(std::string_view name, std::span<const float> values) {
  at(name, AttributeType::kFloats).floats = arena_.copy(values);
  return *this;
}
AttributeList& AttributeList::erase(std::string_view name) {
  std::erase_if(list_, [&](const Attribute& a) { return a.name == name; });
  return *this;
}

Editor::Editor(Graph& root) : root_(root) {
  root.for_each_graph([&](Graph& graph) { graphs_.push_back(&graph); });
  grow();
  for (Graph* graph : graphs_) {
    for (size_t i = 0; i < graph->nodes.size(); ++i) {
      Node* node = graph->nodes[i];
      if (node->id >= order_.size()) order_.resize(node->id + 1), dead_.resize(node->id + 1);
      order_[node->id] = i * 4 + 1;
      for (Edge* input : node->inputs) add_use(input, *node);
    }
    for (Edge* output : graph->outputs) ++output_uses_[output->id];
  }
}

void Editor::grow() {
  if (users_.size() >= root_.edge_count()) return;
  users_.resize(root_.edge_count());
  output_uses_.resize(root_.edge_count());
}

void Editor::add_use(Edge* edge, Node& node) {
  if (edge != nullptr) users_[edge->id].push_back(&node);
}

void Editor::drop_use(Edge* edge, Node& node) {
  if (edge == nullptr) return;
  std::vector<Node*>& list = users_[edge->id];
  list.erase(std::find(list.begin(), list.end(), &node));
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
  const std::vector<Node*>& list = users_[edge.id];
  if (list.size() != 1 || output_uses_[edge.id] > 0 || list[0]->graph != edge.graph) return nullptr;
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

Edge* Editor::insert(Node& place, int phase, std::string_view domain, std::string_view op_type,
                     std::initializer_list<Edge*> inputs, std::span<const Attribute> attributes,
                     Edge* output) {
  changed_ = true;
  Graph& graph = *place.graph;
  if (output == nullptr) {
    output = graph.add_edge(fmt::format("{}/{}_{}", place.name, op_type, graph.edge_count()));
    grow();
  }
  Edge* outputs[] = {output};
  Node* node = graph.add_node(domain, op_type, "", std::span<Edge* const>(inputs.begin(), inputs.size()),
                              outputs, attributes);
  if (node->id >= order_.size()) order_.resize(node->id + 1), dead_.resize(node->id + 1);
  order_[node->id] = order_[place.id] / 4 * 4 + static_cast<uint64_t>(phase);
  for (Edge* input : node->inputs) add_use(input, *node);
  resolve(*node, arena());
  infer(*node);
  return output;
}

Edge* Editor::insert_before(Node& place, std::string_view domain, std::string_view op_type,
                            std::initializer_list<Edge*> inputs, std::span<const Attribute> attributes) {
  return insert(place, 0, domain, op_type, inputs, attributes, nullptr);
}

Edge* Editor::insert_after(Node& place, std::string_view domain, std::string_view op_type,
                           std::initializer_list<Edge*> inputs, std::span<const Attribute> attributes,
                           Edge* output) {
  return insert(place, 2, domain, op_type, inputs, attributes, output);
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
    const std::vector<Node*> moved = users_[to.id];
    users_[to.id].clear();
    for (Node* user : moved) {
      std::replace(user->inputs.begin(), user->inputs.end(), &to, &from);
      if (user != old_maker) users_[from.id].push_back(user);
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
  if (users_[from.id].empty()) return true;
  changed_ = true;
  const std::vector<Node*> moved = std::move(users_[from.id]);
  users_[from.id].clear();
  for (Node* user : moved) {
    std::replace(user->inputs.begin(), user->inputs.end(), &from, &to);
    users_[to.id].push_back(user);
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

Edge* Editor::constant(std::string_view name, ElementType type, std::span<const int64_t> dims,
                       std::span<const std::byte> bytes) {
  std::span<std::byte> copy(static_cast<std::byte*>(arena().allocate(bytes.size() + 1, 64)), bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.begin());
  TensorData tensor;
  tensor.type = type;
  tensor.dims = arena().copy(dims);
  tensor.bytes = copy;
  Edge* edge = root_.add_constant(fmt::format("{}_{}", name, root_.edge_count()), tensor);
  grow();
  return edge;
}

Edge* Editor::constant(std::string_view name, std::span<const int64_t> dims, std::span<const float> values) {
  return constant(name, ElementType::kFloat, dims, std::as_bytes(values));
}

Edge* Editor::constant(std::string_view name, std::span<const int64_t> dims,
                       std::span<const int64_t> values) {
  return constant(name, ElementType::kInt64, dims, std::as_bytes(values));
}

Edge* Editor::constant_view(const Edge& source, std::span<const int64_t> dims) {
  TensorData tensor = *source.data;
  tensor.dims = arena().copy(dims);
  Edge* edge = root_.add_constant(fmt::format("{}_{}", source.name, root_.edge_count()), tensor);
  grow();
  return edge;
}

void Editor::infer(Node& node) {
  std::vector<Facts> inputs(node.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i] == nullptr) continue;
    inputs[i] = node.inputs[i]->facts;
    if (node.inputs[i]->constant != nullptr) inputs[i].constant = node.inputs[i]->constant;
  }
  const std::vector<Facts> outputs = infer_node(node, inputs, arena(), root_.dims());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i] != nullptr) node.outputs[i]->facts = outputs[i];
  }
}

bool Editor::finish() {
  if (!changed_) return false;
  for (Graph* graph : graphs_) {
    std::vector<Node*> kept;
    for (Node* node : graph->nodes) {
      if (!dead_[node->id]) kept.push_back(node);
    }
    std::stable_sort(kept.begin(), kept.end(),
                     [&](Node* a, Node* b) { return order_[a->id] < order_[b->id]; });
    std::copy(kept.begin(), kept.end(), graph->nodes.begin());
    graph->nodes.resize_down(kept.size());
  }
  // Sorting looks into the bodies of nodes: none of them may hold a dead one any more.
  for (Graph* graph : graphs_) graph->sort();
  return true;
}

}  // namespace plimsoll
