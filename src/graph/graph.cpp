#include "graph/graph.h"

#include <algorithm>
#include <queue>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "graph/sort.h"
#include "memory/transient_memory.h"

namespace plimsoll {

void TensorData::read(int64_t offset, std::span<std::byte> to) const {
  file->read(static_cast<size_t>(bytes.data() - file->bytes().data() + offset), to);
}

void Edge::set_data(BumpArena& arena, const TensorData& tensor) {
  data = arena.make<TensorData>(tensor);
  constant = arena.make<TensorView>(tensor.view());
  std::span<Dim> dims = arena.array<Dim>(tensor.dims.size());
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = tensor.dims[i];
  facts.type = {ValueKind::kTensor, tensor.type, ElementType::kUndefined, true, dims, nullptr};
  facts.constant = constant;
  if (persistent) make_persistent();
}

void Edge::make_persistent() {
  persistent = true;
  constant = nullptr;
  facts.constant = nullptr;
  facts.values.reset();
}

const Attribute* Node::attribute(std::string_view attribute_name) const {
  for (const Attribute& a : attributes) {
    if (a.name == attribute_name) return &a;
  }
  return nullptr;
}

std::string Node::label() const {
  return fmt::format("node '{}' ({})", name, op_type);
}

Graph::Graph(BumpArena& arena, DimPool& dims)
    : nodes(arena),
      inputs(arena),
      outputs(arena),
      updated(arena),
      initializers(arena),
      warnings(arena),
      overridable(arena),
      arena_(&arena),
      dims_(&dims),
      root_(this) {}

Graph::Graph(Graph& outer)
    : nodes(*outer.arena_),
      inputs(*outer.arena_),
      outputs(*outer.arena_),
      updated(*outer.arena_),
      initializers(*outer.arena_),
      warnings(*outer.arena_),
      overridable(*outer.arena_),
      arena_(outer.arena_),
      dims_(outer.dims_),
      outer_(&outer),
      root_(outer.root_) {}

Edge* Graph::add_edge(std::string_view edge_name) {
  Edge* edge = arena_->make<Edge>();
  edge->id = root_->next_edge_++;
  edge->name = arena_->copy(edge_name);
  edge->graph = this;
  return edge;
}

Edge* Graph::add_constant(std::string_view edge_name, const TensorData& tensor) {
  Edge* edge = add_edge(edge_name);
  edge->set_data(*arena_, tensor);
  initializers.push_back(edge);
  return edge;
}

Edge* Graph::add_state(std::string_view edge_name, ElementType type, std::span<const int64_t> dims,
                       Account account) {
  Edge* edge = add_constant(edge_name, {type, arena_->copy(dims), {}, false});
  edge->make_persistent();
  edge->account = account;
  return edge;
}

void Graph::add_update(Edge* state, Edge* next) {
  outputs.push_back(next);
  updated.push_back(state);
}

Node* Graph::add_node(std::string_view domain_name, std::string_view op_type, std::string_view node_name,
                      std::span<Edge* const> node_inputs, std::span<Edge* const> node_outputs,
                      std::span<const Attribute> attributes) {
  Node* node = arena_->make<Node>();
  node->id = root_->next_node_++;
  node->domain = arena_->copy(domain_name);
  node->op_type = arena_->copy(op_type);
  node->name =
      node_name.empty() ? arena_->copy(fmt::format("{}_{}", op_type, node->id)) : arena_->copy(node_name);
  node->opset = opset(node->domain);
  node->graph = this;
  node->inputs = arena_->copy(node_inputs);
  node->outputs = arena_->copy(node_outputs);
  node->attributes = arena_->copy(attributes);
  for (Edge* output : node->outputs) {
    if (output != nullptr) output->producer = node;
  }
  nodes.push_back(node);
  return node;
}

int Graph::opset(std::string_view domain_name) const {
  for (const OpsetImport& import : root_->opsets) {
    if (import.domain == domain_name) return static_cast<int>(import.version);
  }
  return 0;
}

void Graph::warn(std::string_view message) {
  if (root_->strict) fail(ErrorCode::kInvalidModel, "{}", message);
  ArenaVector<std::string_view>& known = root_->warnings;
  if (known.size() > kMaxWarnings || std::find(known.begin(), known.end(), message) != known.end()) return;
  known.push_back(known.size() < kMaxWarnings ? arena_->copy(message) : "more warnings are left out");
}

void Graph::replace_uses(Edge* from, Edge* to) {
  for_each_graph([&](Graph& graph) {
    for (Node* node : graph.nodes) std::replace(node->inputs.begin(), node->inputs.end(), from, to);
    std::replace(graph.outputs.begin(), graph.outputs.end(), from, to);
  });
}

namespace {

// Calls f(edge) for every edge of `graph` that `node` needs, those captured by its bodies included.
template <typename F>
void for_each_dependency(const Node& node, const Graph* graph, F&& f) {
  const auto need = [&](const Edge* edge) {
    if (edge != nullptr && edge->graph == graph) f(edge);
  };
  std::for_each(node.inputs.begin(), node.inputs.end(), need);
  const auto visit = [&](Graph* body) {
    body->for_each_graph([&](Graph& inner) {
      for (Node* n : inner.nodes) std::for_each(n->inputs.begin(), n->inputs.end(), need);
      std::for_each(inner.outputs.begin(), inner.outputs.end(), need);
    });
  };
  for (const Attribute& a : node.attributes) {
    if (a.graph != nullptr) visit(a.graph);
    for (Graph* body : a.graphs) visit(body);
  }
}

// Whether every node comes behind the nodes that it depends on. False too where that would take a large
// table.
bool is_sorted(Graph& graph, std::pmr::memory_resource* tables) {
  const ArenaVector<Node*>& nodes = graph.nodes;
  if (nodes.empty()) return true;
  uint32_t first = nodes.begin()[0]->id, last = first;
  for (const Node* node : nodes) {
    first = std::min(first, node->id);
    last = std::max(last, node->id);
  }
  constexpr size_t kSparse = 64;
  if (last - first > kSparse * nodes.size()) return false;
  std::pmr::vector<bool> is_behind(last - first + 1, false, tables);
  bool sorted = true;
  for (const Node* node : nodes) {
    for_each_dependency(*node, &graph, [&](const Edge* edge) {
      const Node* maker = edge->producer;
      if (maker == nullptr) return;
      sorted = sorted && maker->id >= first && maker->id <= last && is_behind[maker->id - first];
    });
    if (!sorted) return false;
    is_behind[node->id - first] = true;
  }
  return true;
}

}  // namespace

void Graph::sort() {
  TransientMemory memory(arena_->budget());
  sort_nodes(*this, memory.resource());
}

void sort_nodes(Graph& graph, std::pmr::memory_resource* tables) {
  if (is_sorted(graph, tables)) return;  // sorting would change nothing
  ArenaVector<Node*>& nodes = graph.nodes;
  using Numbers = std::pmr::vector<uint32_t>;
  // Of this graph's own nodes: a model may have many small bodies.
  std::pmr::vector<std::pair<const Node*, uint32_t>> position(tables);
  position.reserve(nodes.size());
  for (uint32_t i = 0; i < nodes.size(); ++i) position.emplace_back(nodes[i], i);
  std::sort(position.begin(), position.end());
  const auto maker = [&](const Edge* edge) {
    return std::lower_bound(position.begin(), position.end(),
                            std::pair<const Node*, uint32_t>(edge->producer, 0))
        ->second;
  };
  // The users of node i are users[begin[i]] to users[begin[i + 1]].
  Numbers waiting(nodes.size(), 0, tables), begin(nodes.size() + 1, 0, tables);
  for (size_t i = 0; i < nodes.size(); ++i) {
    for_each_dependency(*nodes[i], &graph, [&](const Edge* edge) {
      if (edge->producer == nullptr) return;
      ++begin[maker(edge) + 1];
      ++waiting[i];
    });
  }
  for (size_t i = 0; i < nodes.size(); ++i) begin[i + 1] += begin[i];
  Numbers users(begin.back(), 0, tables), next(begin, tables);
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    for_each_dependency(*nodes[i], &graph, [&](const Edge* edge) {
      if (edge->producer != nullptr) users[next[maker(edge)]++] = i;
    });
  }
  std::priority_queue<uint32_t, Numbers, std::greater<>> ready{std::greater<>(), Numbers(tables)};
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    if (waiting[i] == 0) ready.push(i);
  }
  std::pmr::vector<Node*> sorted(tables);
  sorted.reserve(nodes.size());
  while (!ready.empty()) {
    const uint32_t first = ready.top();
    ready.pop();
    sorted.push_back(nodes[first]);
    for (uint32_t u = begin[first]; u < begin[first + 1]; ++u) {
      if (--waiting[users[u]] == 0) ready.push(users[u]);
    }
  }
  if (sorted.size() != nodes.size()) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (waiting[i] > 0)
        fail(ErrorCode::kInvalidModel, "{}: expected an acyclic graph, found a cycle through it",
             nodes[i]->label());
    }
  }
  std::copy(sorted.begin(), sorted.end(), nodes.begin());
}

std::vector<int> count_uses(Graph& root) {
  std::vector<int> uses(root.edge_count(), 0);
  root.for_each_graph([&](Graph& graph) {
    for (Node* node : graph.nodes) {
      for (Edge* input : node->inputs) {
        if (input != nullptr) ++uses[input->id];
      }
    }
    for (Edge* output : graph.outputs) ++uses[output->id];
  });
  return uses;
}

}  // namespace plimsoll
