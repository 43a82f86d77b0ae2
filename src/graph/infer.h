// Types and shapes of a whole graph.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/op_def.h"

namespace plimsoll {

// Facts of every edge of a model, by edge id. For symbolic dimensions the facts are kept on the edges
// themselves (infer_graph); for a concrete shape they are a table of their own.
class FactsTable {
 public:
  FactsTable(const Graph& root, BumpArena& arena) : facts_(arena.array<Facts>(root.edge_count())) {}
  Facts& operator[](const Edge* edge) { return facts_[edge->id]; }
  const Facts& operator[](const Edge* edge) const { return facts_[edge->id]; }

 private:
  std::span<Facts> facts_;
};

// Infers graphs into a FactsTable. Constants are known from the edges; facts of the root's inputs
// must be in the table before. New dimensions and arrays live in `arena`.
class GraphInferrer : public BodyInferrer {
 public:
  // Called after a node was inferred; may improve the facts of its outputs (fold small constants).
  using Hook = std::function<void(const Node&, std::span<const Facts> inputs, std::span<Facts> outputs)>;
  GraphInferrer(FactsTable& table, BumpArena& arena, DimPool& pool, Hook hook = {})
      : table_(table), arena_(arena), pool_(pool), hook_(std::move(hook)) {}

  // Nodes must be resolved and in order.
  void infer(const Graph& graph);
  std::vector<Facts> infer(const Graph& body, std::span<const Facts> inputs) override;

 private:
  void infer_node(const Node& node);

  FactsTable& table_;
  BumpArena& arena_;
  DimPool& pool_;
  Hook hook_;
};

// Infers on symbolic dimensions and writes the result to Edge::facts throughout the model.
void infer_graph(Graph& root);

// Infers the outputs of one node from facts of its inputs. Absent inputs have default facts.
std::vector<Facts> infer_node(const Node& node, std::span<const Facts> inputs, BumpArena& arena,
                              DimPool& pool, BodyInferrer* bodies = nullptr);
// The same from the facts on its edges, and to them; also to those inside its bodies.
void infer_outputs(Node& node);

// Facts of an edge that is an initializer.
Facts constant_facts(const Edge& edge);
// What edges know, by position; absent ones know nothing.
std::vector<Facts> facts_of_edges(std::span<Edge* const> edges);

}  // namespace plimsoll
