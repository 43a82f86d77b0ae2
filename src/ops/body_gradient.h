// What the gradients of operators with bodies share. The backward node's body holds a copy of the forward
// body's nodes, which computes again what it needs, and behind it what differentiates them.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>

#include "graph/bodies.h"
#include "graph/gradient.h"

namespace plimsoll {

// A body under construction, of a node that will stand where the gradient is written.
class BackwardBody {
 public:
  // `name` tells bodies of one node apart.
  BackwardBody(GradientContext& c, std::string_view name);

  Graph& graph() const { return graph_; }
  GraphBuilder& build() const { return *build_; }
  // A new input of the body.
  Edge* input(std::string_view name, const TypeInfo& type);
  // Says what an edge of the forward body is here, before copy().
  void bind(const Edge* forward, Edge* here) { edges_[forward] = here; }
  void copy(const Graph& forward);
  // What became of an edge of the forward body.
  Edge* now(Edge* forward) const { return copy_of(edges_, forward); }
  // The gradient that arrives at `forward`; what is known of its shape is what is known of the value.
  void arrives(Edge* forward, Edge* gradient);
  // Writes what makes the gradients of edges of this body, or of graphs around, in the order they are given;
  // zeros where nothing depends on them.
  std::vector<Edge*> differentiate(std::span<Edge* const> xs);
  // A new edge of the body that is the same as any that it sees: outputs must be its own.
  Edge* own(Edge* edge) const { return build_->op("Identity", {edge}); }
  void output(Edge* edge) { graph_.outputs.push_back(edge->graph == &graph_ ? edge : own(edge)); }
  Attribute attribute(std::string_view name) const;

 private:
  GradientContext& c_;
  std::string prefix_;
  Graph& graph_;
  std::unique_ptr<GraphBuilder> build_;
  EdgeMap edges_;
  std::vector<Edge*> ys_, of_ys_;
};

// What inputs of the forward body were at every turn, one behind the other: further outputs of the forward
// node, which are made for those that the backward body reads.
class TurnStacks {
 public:
  TurnStacks(GradientContext& c, Graph& forward) : c_(c), forward_(forward) {}
  // An edge for the values of an input of the forward body. Its first dimension is the turns.
  Edge* add(Edge* input);
  // Makes the forward node give out those that are used.
  void keep(const std::unordered_set<const Edge*>& used);

 private:
  struct Stack {
    Edge *input, *stacked;
  };
  GradientContext& c_;
  Graph& forward_;
  std::vector<Stack> stacks_;
};

void gradient_loop(GradientContext& c);
void gradient_scan(GradientContext& c);

// The gradients of carried values of another shape in every turn cannot be stacked: an Error.
void expect_same_shape(const GradientContext& c, size_t carried, const TypeInfo& before,
                       const TypeInfo& inside);
// An Error if something inside is drawn at random, because a copy would draw something else.
void expect_no_random_nodes(const GradientContext& c, const Graph& body);
// What the nodes of a body read, and what it gives out.
std::unordered_set<const Edge*> used_edges(const Graph& body);
// Float tensors, of which gradients can be.
bool is_real(const TypeInfo& type);
Edge* zeros_like(GraphBuilder& build, Edge* edge);
bool same_dims(const TypeInfo& a, const TypeInfo& b);

}  // namespace plimsoll
