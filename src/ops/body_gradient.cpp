#include "ops/body_gradient.h"

#include <algorithm>

#include "graph/infer.h"
#include "ops/registry.h"

namespace plimsoll {
namespace {

class BodyBuilder : public GraphBuilder {
 public:
  BodyBuilder(Graph& graph, std::string_view prefix)
      : GraphBuilder(graph, prefix, resolve), prefix_(prefix) {}

 private:
  void added(Node& node) override {
    node.name = graph().arena().copy(fmt::format("{}/{}_{}", prefix_, node.op_type, node.id));
    if (node.domain.empty()) node.opset = kGradientOpset;
  }

  std::string prefix_;
};

}  // namespace

bool same_dims(const TypeInfo& a, const TypeInfo& b) {
  return a.ranked && b.ranked && std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end());
}

BackwardBody::BackwardBody(GradientContext& c, std::string_view name)
    : c_(c),
      prefix_(fmt::format("{}_grad/{}", c.node().name, name)),
      graph_(*c.build.graph().arena().make<Graph>(c.build.graph())),
      build_(std::make_unique<BodyBuilder>(graph_, prefix_)) {
  graph_.name = graph_.arena().copy(prefix_);
}

Edge* BackwardBody::input(std::string_view name, const TypeInfo& type) {
  Edge* edge = graph_.add_edge(fmt::format("{}/{}_{}", prefix_, name, graph_.edge_count()));
  edge->facts.type = type;
  graph_.inputs.push_back(edge);
  return edge;
}

void BackwardBody::copy(const Graph& forward) {
  copy_nodes(forward, graph_, edges_, prefix_, resolve);
}

void BackwardBody::arrives(Edge* forward, Edge* gradient) {
  Edge* y = now(forward);
  if (!same_dims(y->facts.type, gradient->facts.type) && y->facts.type.ranked)
    gradient = build_->op("Reshape", {gradient, shape_of(*build_, y)});
  ys_.push_back(y);
  of_ys_.push_back(gradient);
}

std::vector<Edge*> BackwardBody::differentiate(std::span<Edge* const> xs) {
  std::vector<Edge*> gradients = c_.inside.bodies->differentiate(graph_, ys_, of_ys_, xs);
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i] == nullptr) gradients[i] = zeros_like(*build_, xs[i]);
  }
  return gradients;
}

Attribute BackwardBody::attribute(std::string_view name) const {
  Attribute attribute;
  attribute.name = name;
  attribute.type = AttributeType::kGraph;
  attribute.graph = &graph_;
  return attribute;
}

Edge* TurnStacks::add(Edge* input) {
  Graph& graph = c_.build.graph();
  Edge* stacked =
      graph.add_edge(fmt::format("{}/{}_turns_{}", c_.node().name, input->name, graph.edge_count()));
  stacked->facts.type = input->facts.type;
  std::vector<Dim> dims{graph.dims().fresh("turns")};
  dims.insert(dims.end(), input->facts.type.dims.begin(), input->facts.type.dims.end());
  stacked->facts.type.dims = graph.arena().copy(dims);
  stacks_.push_back({input, stacked});
  return stacked;
}

// The forward node has an output, or no gradient would flow into it.
void TurnStacks::keep(const std::unordered_set<const Edge*>& used) {
  std::erase_if(stacks_, [&](const Stack& s) { return used.count(s.stacked) == 0; });
  Node* node = nullptr;
  for (size_t i = 0; node == nullptr; ++i) node = c_.out(i) == nullptr ? nullptr : c_.out(i)->producer;
  BumpArena& arena = forward_.arena();
  BodyBuilder build(forward_, node->name);
  std::vector<Edge*> outputs(node->outputs.begin(), node->outputs.end());
  AttributeList attributes(arena, *node);
  for (const Stack& stack : stacks_) {
    forward_.outputs.push_back(build.op("Identity", {stack.input}));
    outputs.push_back(stack.stacked);
    stack.stacked->producer = node;
  }
  for (const std::string_view name : {"scan_output_axes", "scan_output_directions"}) {
    const Attribute* given = node->attribute(name);
    if (given == nullptr) continue;
    std::vector<int64_t> numbers(given->ints.begin(), given->ints.end());
    numbers.resize(numbers.size() + stacks_.size(), 0);
    attributes.set(name, std::span<const int64_t>(numbers));
  }
  node->outputs = arena.copy(outputs);
  node->attributes = arena.copy(attributes.list());
  resolve(*node, arena);
  infer_outputs(*node);
}

std::unordered_set<const Edge*> used_edges(const Graph& body) {
  std::unordered_set<const Edge*> used(body.outputs.begin(), body.outputs.end());
  for (const Node* node : body.nodes) {
    used.insert(node->inputs.begin(), node->inputs.end());
    for (const Edge* edge : captured_edges(*node)) used.insert(edge);
  }
  return used;
}

void expect_same_shape(const GradientContext& c, size_t carried, const TypeInfo& before,
                       const TypeInfo& inside) {
  if (inside.kind != ValueKind::kTensor) c.reject("its gradient knows no carried {}", to_string(inside));
  if (!same_dims(before, inside))
    c.reject("its gradient needs carried values of one shape, found {} and then {} in value {}",
             to_string(before), to_string(inside), carried);
}

void expect_no_random_nodes(const GradientContext& c, const Graph& body) {
  if (has_random_nodes(body))
    c.reject("its gradient computes '{}' again, in which something is drawn at random", body.name);
}

bool is_real(const TypeInfo& type) {
  return type.kind == ValueKind::kTensor && kFloatTypes.contains(type.type);
}

Edge* zeros_like(GraphBuilder& build, Edge* edge) {
  const TypeInfo& type = edge->facts.type;
  Edge* zero = real_scalar(build, type.type, 0);
  return type.ranked && type.rank() == 0 ? zero : build.op("Expand", {zero, shape_of(build, edge)});
}

}  // namespace plimsoll
