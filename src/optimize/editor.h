// Editor: what a rewrite needs to change a model: who uses what, new nodes and constants in place,
// and no dead nodes left behind.
#pragma once

#include <initializer_list>
#include <memory_resource>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/builder.h"
#include "graph/op_def.h"
#include "memory/transient_memory.h"

namespace plimsoll {

class Editor;

// Tells the Editor of what it makes, and where in the order that goes.
class EditorPlace : public GraphBuilder {
 public:
  EditorPlace(Editor& editor, Graph& graph, std::string_view prefix, uint64_t order);

 private:
  void added(Node& node) override;
  void added(Edge& edge) override;
  Editor& editor_;
  uint64_t order_;
};

// Lives for one pass over one model. Keeps use lists up to date through every change and removes
// nodes as soon as nothing uses them; finish() writes the order of nodes back. Changes must go
// through it. Facts of the edges must be up to date when it is made; those of new edges are inferred.
class Editor {
 public:
  // `tables`: for its tables, and those of the pass; null: memory of its own.
  explicit Editor(Graph& root, std::pmr::memory_resource* tables = nullptr);

  // Every graph of the model, the root first.
  std::span<Graph* const> graphs() const { return graphs_; }
  // The nodes of a graph in order, as they were at the start; check alive().
  std::pmr::vector<Node*> nodes(Graph& graph) { return {graph.nodes.begin(), graph.nodes.end(), memory_}; }
  bool alive(const Node& node) const { return !dead_[node.id]; }
  // Where in the order a node stands; comparable within one graph.
  uint64_t position(const Node& node) const { return order_[node.id]; }

  // Nodes that take the edge as an input, once per input; bodies included.
  std::span<Node* const> users(const Edge& edge) const {
    users_[edge.id].tidy();
    return users_[edge.id].nodes;
  }
  bool is_graph_output(const Edge& edge) const { return output_uses_[edge.id] > 0; }
  int use_count(const Edge& edge) const {
    return static_cast<int>(users_[edge.id].count()) + output_uses_[edge.id];
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
  // For more than one node just before or after `place`; not to be used after finish().
  EditorPlace before(Node& place) { return place_at(place, 0); }
  EditorPlace after(Node& place) { return place_at(place, 2); }
  // Gives a node another output edge in place of its own, which then has no producer.
  Edge* renew_output(Node& node, size_t i);
  // Every use of `from` becomes a use of `to`, which keeps the name of a graph output: false, and
  // nothing is changed, if that would rename an output of the root that cannot be renamed.
  bool replace(Edge& from, Edge& to);
  // The edge becomes a constant; its producer dies when no output of it is used.
  void make_constant(Edge& edge, const TensorData& tensor);
  // A new constant in the root, as GraphBuilder makes them.
  template <typename... Args>
  Edge* constant(Args&&... args) {
    return constants_.constant(std::forward<Args>(args)...);
  }
  Edge* integers(std::span<const int64_t> values) { return constants_.integers(values); }
  Edge* reals(std::string_view name, ElementType type, std::span<const int64_t> dims,
              std::span<const float> values) {
    return constants_.reals(name, type, dims, values);
  }
  Edge* constant_view(const Edge& source, std::span<const int64_t> dims) {
    return constants_.constant_view(source, dims);
  }

  // Removes what is dead and puts nodes into order. True if anything was changed.
  bool finish();

  BumpArena& arena() const { return root_.arena(); }
  Graph& root() const { return root_; }
  // For tables that live as long as the pass.
  std::pmr::memory_resource* memory() { return memory_; }

 private:
  // Half of a model may use one value, and leave it one by one: what leaves is crossed out first, and found
  // from where the last one left.
  struct Users {
    using allocator_type = std::pmr::polymorphic_allocator<Node*>;
    Users() = default;
    explicit Users(const allocator_type& allocator) : nodes(allocator) {}
    Users(Users&& other, const allocator_type& allocator)
        : nodes(std::move(other.nodes), allocator), gone(other.gone), last(other.last) {}
    Users(Users&&) = default;
    Users& operator=(Users&&) = default;

    size_t count() const { return nodes.size() - gone; }
    void remove(const Node& node);
    void tidy();

    std::pmr::vector<Node*> nodes;  // null: gone
    uint32_t gone = 0, last = 0;
  };
  friend class EditorPlace;
  EditorPlace place_at(Node& place, uint64_t phase);
  void grow();
  void add_use(Edge* edge, Node& node);
  void drop_use(Edge* edge, Node& node);
  void bury(Node* node);
  std::pmr::vector<Node*> take_users(const Edge& edge);

  Graph& root_;
  std::optional<TransientMemory> own_;
  std::pmr::memory_resource* memory_;
  std::pmr::vector<Graph*> graphs_;
  mutable std::pmr::vector<Users> users_;  // by edge
  std::pmr::vector<int> output_uses_;      // by edge
  std::pmr::vector<bool> dead_;            // by node
  std::pmr::vector<uint64_t> order_;       // by node
  bool changed_ = false;
  EditorPlace constants_;
};

}  // namespace plimsoll
