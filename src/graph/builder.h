// GraphBuilder: writes nodes and constants into a graph. What rewrites, lowerings and gradients use, so
// that an operator's own file can emit other operators without knowing where they come from.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace plimsoll {

// A growing list of attributes for a node to be made. Names and values are kept in the arena.
class AttributeList {
 public:
  explicit AttributeList(BumpArena& arena) : arena_(arena) {}
  // Starts with a copy of the node's.
  AttributeList(BumpArena& arena, const Node& node)
      : arena_(arena), list_(node.attributes.begin(), node.attributes.end()) {}
  AttributeList& set(std::string_view name, int64_t value);
  AttributeList& set(std::string_view name, float value);
  AttributeList& set(std::string_view name, std::string_view value);
  AttributeList& set(std::string_view name, std::span<const int64_t> values);
  AttributeList& set(std::string_view name, std::span<const float> values);
  AttributeList& erase(std::string_view name);
  std::span<const Attribute> list() const { return list_; }

 private:
  Attribute& at(std::string_view name, AttributeType type);
  BumpArena& arena_;
  std::vector<Attribute> list_;
};

// Sets a node's operator and reads its attributes, or throws: what ops/registry.h's resolve does. A
// pointer, because operators are above graphs.
using Resolver = void (*)(Node&, BumpArena&);

// Nodes go where the builder stands, in the order of the calls; constants go to the root, where every
// body sees them. New edges are called after `prefix`, the operator and a number of their own. With a
// resolver, nodes are resolved and their outputs inferred as they are made, so that whoever builds can
// look at shapes on the way; inputs must have their facts then. Bodies cannot be inferred here.
class GraphBuilder {
 public:
  // At the end of the graph.
  GraphBuilder(Graph& graph, std::string_view prefix, Resolver resolver = nullptr)
      : graph_(graph), prefix_(prefix), resolver_(resolver) {}
  // Just before `place`. The names are after it.
  explicit GraphBuilder(Node& place, Resolver resolver = nullptr)
      : graph_(*place.graph), prefix_(place.name), resolver_(resolver), place_(&place) {}
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;
  virtual ~GraphBuilder() = default;

  // One node of ai.onnx with one output, which is returned.
  Edge* op(std::string_view op_type, std::initializer_list<Edge*> inputs,
           std::span<const Attribute> attributes = {}) {
    return emit("", op_type, std::span<Edge* const>(inputs.begin(), inputs.size()), attributes)->outputs[0];
  }
  Edge* op(std::string_view op_type, std::initializer_list<Edge*> inputs, const AttributeList& attributes) {
    return op(op_type, inputs, attributes.list());
  }
  // A node of any domain with that many new outputs.
  Node* emit(std::string_view domain, std::string_view op_type, std::span<Edge* const> inputs,
             std::span<const Attribute> attributes, size_t output_count = 1);
  // A node that makes these edges, which must have no producer; null ones are outputs that are absent.
  Node* emit_into(std::span<Edge* const> outputs, std::string_view domain, std::string_view op_type,
                  std::span<Edge* const> inputs, std::span<const Attribute> attributes);

  // Constants; their bytes are copied into the arena. `name` gets a number.
  Edge* constant(std::string_view name, ElementType type, std::span<const int64_t> dims,
                 std::span<const std::byte> bytes);
  Edge* constant(std::string_view name, std::span<const int64_t> dims, std::span<const float> values);
  Edge* constant(std::string_view name, std::span<const int64_t> dims, std::span<const int64_t> values);
  // Floats of 16 or 32 bits, rounded to them.
  Edge* reals(std::string_view name, ElementType type, std::span<const int64_t> dims,
              std::span<const float> values);
  Edge* scalar(float value) { return constant("scalar", {}, std::span<const float>(&value, 1)); }
  Edge* scalar(int64_t value) { return constant("scalar", {}, std::span<const int64_t>(&value, 1)); }
  // One dimension: what axes, shapes, pads and their like are.
  Edge* integers(std::span<const int64_t> values);
  Edge* integers(std::initializer_list<int64_t> values) {
    return integers(std::span<const int64_t>(values.begin(), values.size()));
  }
  // The bytes of a constant, not copied, under another shape.
  Edge* constant_view(const Edge& source, std::span<const int64_t> dims);

  AttributeList attributes() const { return AttributeList(graph_.arena()); }
  Graph& graph() const { return graph_; }

 protected:
  // Told of everything that is made, before it is resolved. The node is the last of its graph; by
  // default it moves to the builder's place.
  virtual void added(Node& node);
  virtual void added(Edge&) {}

 private:
  Edge* add_constant(std::string_view name, const TensorData& tensor);

  Graph& graph_;
  std::string prefix_;
  Resolver resolver_;
  const Node* place_ = nullptr;
};

}  // namespace plimsoll
