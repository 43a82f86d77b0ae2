#include "graph/builder.h"

#include <algorithm>

#include "graph/infer.h"

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

Node* GraphBuilder::emit(std::string_view domain, std::string_view op_type, std::span<Edge* const> inputs,
                         std::span<const Attribute> attributes, size_t output_count) {
  std::vector<Edge*> outputs(output_count);
  for (Edge*& output : outputs) {
    output = graph_.add_edge(fmt::format("{}/{}_{}", prefix_, op_type, graph_.edge_count()));
    added(*output);
  }
  return emit_into(outputs, domain, op_type, inputs, attributes);
}

Node* GraphBuilder::emit_into(std::span<Edge* const> outputs, std::string_view domain,
                              std::string_view op_type, std::span<Edge* const> inputs,
                              std::span<const Attribute> attributes) {
  Node* node = graph_.add_node(domain, op_type, "", inputs, outputs, attributes);
  added(*node);
  if (resolver_ != nullptr) {
    resolver_(*node, graph_.arena());
    infer_outputs(*node);
  }
  return node;
}

void GraphBuilder::added(Node&) {
  if (place_ == nullptr) return;
  Node** at = std::find(graph_.nodes.begin(), graph_.nodes.end(), place_);
  std::rotate(at, graph_.nodes.end() - 1, graph_.nodes.end());
}

Edge* GraphBuilder::constant(std::string_view name, ElementType type, std::span<const int64_t> dims,
                             std::span<const std::byte> bytes) {
  BumpArena& arena = graph_.arena();
  std::span<std::byte> copy(static_cast<std::byte*>(arena.allocate(bytes.size() + 1, 64)), bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.begin());
  TensorData tensor;
  tensor.type = type;
  tensor.dims = arena.copy(dims);
  tensor.bytes = copy;
  return add_constant(name, tensor);
}

Edge* GraphBuilder::constant(std::string_view name, std::span<const int64_t> dims,
                             std::span<const float> values) {
  return constant(name, ElementType::kFloat, dims, std::as_bytes(values));
}

Edge* GraphBuilder::constant(std::string_view name, std::span<const int64_t> dims,
                             std::span<const int64_t> values) {
  return constant(name, ElementType::kInt64, dims, std::as_bytes(values));
}

Edge* GraphBuilder::reals(std::string_view name, ElementType type, std::span<const int64_t> dims,
                          std::span<const float> values) {
  return visit_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> rounded;
    for (float value : values) rounded.push_back(T(value));
    return constant(name, type, dims, std::as_bytes(std::span<const T>(rounded)));
  });
}

Edge* GraphBuilder::integers(std::span<const int64_t> values) {
  const int64_t dims[] = {static_cast<int64_t>(values.size())};
  return constant("integers", dims, values);
}

Edge* GraphBuilder::constant_view(const Edge& source, std::span<const int64_t> dims) {
  TensorData tensor = *source.data;
  tensor.dims = graph_.arena().copy(dims);
  return add_constant(source.name, tensor);
}

Edge* GraphBuilder::add_constant(std::string_view name, const TensorData& tensor) {
  Graph& root = graph_.root();
  Edge* edge = root.add_constant(fmt::format("{}_{}", name, root.edge_count()), tensor);
  added(*edge);
  return edge;
}

}  // namespace plimsoll
