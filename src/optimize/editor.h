// Editor: what a rewrite needs to change a model: who uses what, new nodes and constants in place,
// and no dead nodes left behind.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/op_def.h"

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

// Lives for one pass over one model. Keeps use lists up to date through every change and removes
// nodes as soon as nothing uses them; finish() writes the order of nodes back. Changes must go
// through it. Facts of the edges must be up to date when it is made; those of new edges are inferred.
class Editor {
 public:
  explicit Editor(Graph& root);

  // Every graph of the model, the root first.
  std::span<Graph* const> graphs() const { return graphs_; }
  // The nodes of a graph in order, as they were at the start; check alive().
  std::vector<Node*> nodes(Graph& graph) const { return {graph.nodes.begin(), graph.nodes.end()}; }
  bool alive(const Node& node) const { return !dead_[node.id]; }
  // Where in the order a node stands; comparable within one graph.
  uint64_t position(const Node& node) const { return order_[node.id]; }

  // Nodes that take the edge as an input, once per input; bodies included.
  std::span<Node* const> users(const Edge& edge) const { return users_[edge.id]; }
  bool is_graph_output(const Edge& edge) const { return output_uses_[edge.id] > 0; }
  int use_count(const Edge& edge) const {
    return static_cast<int>(users_[edge.id].size()) + output_uses_[edge.id];
  }
  // The one node that uses the edge, once, in its own graph; null if there are other uses.
  Node* only_user(const Edge& edge) const;

  // Turns a node into another operator with the same outputs.
  void become(Node& node, std::string_view domain, std::string_view op_type, std::span<Edge* const> inputs,
              std::span<const Attribute> attributes);
  void become(Node& node, std::string_view domain, std::string_view op_type,
              std::initializer_list<Edge*> inputs, std::span<const Attribute> attributes) {
    become(node, domain, op_type, std::span<Edge* const>(inputs.begin(), inputs.size()), attributes);
  }
  void set_input(Node& node, size_t i, Edge* edge);
  // A new node just before or after `place` in the order, resolved and inferred; returns output 0,
  // which is a new edge, or `output`, which must have no producer.
  Edge* insert_before(Node& place, std::string_view domain, std::string_view op_type,
                      std::initializer_list<Edge*> inputs, std::span<const Attribute> attributes);
  Edge* insert_after(Node& place, std::string_view domain, std::string_view op_type,
                     std::initializer_list<Edge*> inputs, std::span<const Attribute> attributes,
                     Edge* output = nullptr);
  // Gives a node another output edge in place of its own, which then has no producer.
  Edge* renew_output(Node& node, size_t i);
  // Every use of `from` becomes a use of `to`, which keeps the name of a graph output: false, and
  // nothing is changed, if that would rename an output of the root that cannot be renamed.
  bool replace(Edge& from, Edge& to);
  // The edge becomes a constant; its producer dies when no output of it is used.
  void make_constant(Edge& edge, const TensorData& tensor);
  // A new constant in the root. Bytes are copied into the arena.
  Edge* constant(std::string_view name, ElementType type, std::span<const int64_t> dims,
                 std::span<const std::byte> bytes);
  Edge* constant(std::string_view name, std::span<const int64_t> dims, std::span<const float> values);
  Edge* constant(std::string_view name, std::span<const int64_t> dims, std::span<const int64_t> values);
  // The same bytes under another shape.
  Edge* constant_view(const Edge& source, std::span<const int64_t> dims);

  // Infers the outputs of a node again.
  void infer(Node& node);
  // Removes what is dead and puts nodes into order. True if anything was changed.
  bool finish();

  BumpArena& arena() const { return root_.arena(); }
  Graph& root() const { return root_; }

 private:
  Edge* insert(Node& place, int phase, std::string_view domain, std::string_view op_type,
               std::initializer_list<Edge*> inputs, std::span<const Attribute> attributes, Edge* output);
  void grow();
  void add_use(Edge* edge, Node& node);
  void drop_use(Edge* edge, Node& node);
  void bury(Node* node);

  Graph& root_;
  std::vector<Graph*> graphs_;
  std::vector<std::vector<Node*>> users_;  // by edge
  std::vector<int> output_uses_;           // by edge
  std::vector<bool> dead_;                 // by node
  std::vector<uint64_t> order_;            // by node
  bool changed_ = false;
};

}  // namespace plimsoll
