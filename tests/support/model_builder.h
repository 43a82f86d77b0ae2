// Small models written as code, for tests that need bytes of an ONNX file.
#pragma once

#include <string>
#include <vector>

#include "memory/bump_arena.h"
#include "onnx/writer.h"

namespace plimsoll {

class ModelBuilder {
 public:
  explicit ModelBuilder(int opset = 17)
      : budget_("builder", 0), arena_(budget_), dims_(arena_), graph_(arena_, dims_) {
    imports_[0] = {"", opset};
    graph_.opsets = imports_;
    graph_.ir_version = 8;
    graph_.name = "test";
  }

  // Numbers are sizes, other text is a symbol.
  Edge* input(const std::string& name, ElementType type, const std::vector<std::string>& dims) {
    Edge* edge = graph_.add_edge(name);
    edge->facts.type = type_of(type, dims);
    graph_.inputs.push_back(edge);
    return edge;
  }
  // A sequence or an optional of tensors; with `key`, a sequence of maps.
  Edge* list_input(const std::string& name, ValueKind kind, ElementType type,
                   ElementType key = ElementType::kUndefined) {
    Edge* edge = graph_.add_edge(name);
    edge->facts.type = list_type(kind, type, key);
    graph_.inputs.push_back(edge);
    return edge;
  }
  void list_output(Edge* edge, ValueKind kind, ElementType type, ElementType key = ElementType::kUndefined) {
    edge->facts.type = list_type(kind, type, key);
    graph_.outputs.push_back(edge);
  }
  Edge* list_body_input(Graph& body, const std::string& name, ValueKind kind, ElementType type) {
    Edge* edge = body.add_edge(name);
    edge->facts.type = list_type(kind, type, ElementType::kUndefined);
    body.inputs.push_back(edge);
    return edge;
  }
  template <typename T>
  Edge* constant(const std::string& name, const std::vector<int64_t>& dims, const std::vector<T>& values) {
    return constant_in(graph_, name, dims, values);
  }
  template <typename T>
  Edge* constant_in(Graph& graph, const std::string& name, const std::vector<int64_t>& dims,
                    const std::vector<T>& values) {
    std::span<T> data = arena_.array<T>(values.size());
    for (size_t i = 0; i < values.size(); ++i) data[i] = values[i];
    TensorData tensor;
    tensor.type = element_type_of<T>();
    tensor.dims = arena_.copy(dims);
    tensor.bytes = std::as_bytes(std::span<const T>(data));
    return graph.add_constant(name, tensor);
  }
  std::vector<Edge*> node(const std::string& op, const std::vector<Edge*>& inputs, size_t outputs = 1,
                          const std::vector<Attribute>& attributes = {}) {
    return node_in(graph_, op, inputs, outputs, attributes);
  }
  std::vector<Edge*> node_in(Graph& graph, const std::string& op, const std::vector<Edge*>& inputs,
                             size_t outputs = 1, const std::vector<Attribute>& attributes = {}) {
    std::vector<Edge*> made;
    for (size_t i = 0; i < outputs; ++i)
      made.push_back(graph.add_edge(op + "_out" + std::to_string(next_++)));
    graph.add_node("", op, op + std::to_string(next_++), inputs, made, attributes);
    return made;
  }
  void output(Edge* edge, ElementType type = ElementType::kFloat) {
    if (edge->facts.type.type == ElementType::kUndefined) edge->facts.type.type = type;
    graph_.outputs.push_back(edge);
  }
  static Attribute integers(std::string_view name, std::span<const int64_t> values) {
    Attribute a;
    a.name = name, a.type = AttributeType::kInts, a.ints = values;
    return a;
  }
  static Attribute integer(std::string_view name, int64_t value) {
    Attribute a;
    a.name = name, a.type = AttributeType::kInt, a.i = value;
    return a;
  }
  static Attribute body(std::string_view name, Graph* graph) {
    Attribute a;
    a.name = name, a.type = AttributeType::kGraph, a.graph = graph;
    return a;
  }
  Graph* new_body() { return arena_.make<Graph>(graph_); }
  Edge* body_input(Graph& body, const std::string& name, ElementType type,
                   const std::vector<std::string>& dims) {
    Edge* edge = body.add_edge(name);
    edge->facts.type = type_of(type, dims);
    body.inputs.push_back(edge);
    return edge;
  }
  std::string bytes() const { return write_model_bytes(graph_); }
  Graph& graph() { return graph_; }

 private:
  TypeInfo list_type(ValueKind kind, ElementType type, ElementType key) {
    auto* element = arena_.make<TypeInfo>();
    element->type = type;
    if (key != ElementType::kUndefined) {
      auto* map = arena_.make<TypeInfo>();
      map->kind = ValueKind::kMap;
      map->key = key;
      map->element = element;
      element = map;
    }
    TypeInfo list;
    list.kind = kind;
    list.element = element;
    return list;
  }
  TypeInfo type_of(ElementType type, const std::vector<std::string>& dims) {
    std::vector<Dim> list;
    for (const std::string& d : dims) {
      const bool number = !d.empty() && d.find_first_not_of("0123456789") == std::string::npos;
      list.push_back(number ? Dim(std::stoll(d)) : dims_.symbol(d));
    }
    return {ValueKind::kTensor, type, ElementType::kUndefined, true, arena_.copy(list), nullptr};
  }

  Budget budget_;
  BumpArena arena_;
  DimPool dims_;
  Graph graph_;
  OpsetImport imports_[1];
  int next_ = 0;
};

}  // namespace plimsoll
