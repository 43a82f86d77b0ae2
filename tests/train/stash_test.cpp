// What a step keeps in bfloat16: which results may be rounded, and what becomes of the graph.
#include "train/stash.h"

#include <gtest/gtest.h>

#include "graph/builder.h"
#include "graph/infer.h"
#include "ops/registry.h"
#include "train/forward.h"

namespace plimsoll {
namespace {

// Nodes are forward as far as `loss` needs them, and backward behind.
class StashCase {
 public:
  StashCase()
      : budget_("test", 0), arena_(budget_), dims_(arena_), graph(arena_, dims_), build(graph, "t", resolve) {
    imports_[0] = {"", 17};
    graph.opsets = imports_;
    x = graph.add_edge("x");
    const Dim dims[] = {dims_.symbol("batch"), 8};
    x->facts.type = {ValueKind::kTensor,
                     ElementType::kFloat,
                     ElementType::kUndefined,
                     true,
                     arena_.copy(std::span<const Dim>(dims)),
                     nullptr};
    graph.inputs.push_back(x);
  }

  Edge* sum(Edge* edge) {
    return build.op("ReduceSum", {edge}, build.attributes().set("keepdims", int64_t{0}));
  }
  void loss_is(Edge* edge) { graph.outputs.push_back(loss = edge); }
  void wants(Edge* edge) { graph.outputs.push_back(edge); }

  std::vector<Stash> stashes() {
    graph.sort();
    infer_graph(graph);
    return find_stashes(graph, {&loss, 1}, graph.outputs.span());
  }
  std::vector<const Edge*> stashed() {
    std::vector<const Edge*> edges;
    for (const Stash& stash : stashes()) edges.push_back(stash.edge);
    return edges;
  }

 private:
  Budget budget_;
  BumpArena arena_;
  DimPool dims_;
  OpsetImport imports_[1];

 public:
  Graph graph;
  GraphBuilder build;
  Edge *x, *loss = nullptr;
};

using Edges = std::vector<const Edge*>;

TEST(Stash, IsRoundedBehindItsLastReaderAndWidenedOnce) {
  StashCase c;
  Edge* a = c.build.op("Exp", {c.x});
  Edge* seen = c.build.op("Reshape", {a, c.build.integers({8, -1})});
  Edge* last = c.build.op("Tanh", {seen});
  c.loss_is(c.sum(last));
  Edge* first_reader = c.build.op("Mul", {a, c.x});
  Edge* second_reader = c.build.op("Neg", {seen});
  c.wants(first_reader);
  c.wants(second_reader);
  const std::vector<Stash> stashes = c.stashes();
  ASSERT_EQ(stashes.size(), 1u);  // the view is what it looks at
  EXPECT_EQ(stashes[0].edge, a);
  EXPECT_EQ(stashes[0].backward, (std::vector<Node*>{first_reader->producer, second_reader->producer}));
  const std::vector<Edge*> rounded = stash_in_bfloat16(c.graph, stashes);
  ASSERT_EQ(rounded.size(), 1u);
  EXPECT_EQ(rounded[0]->facts.type.type, ElementType::kBFloat16);
  EXPECT_TRUE(is_rounding(*rounded[0]->producer));
  // Forward nothing changed; behind, both read what was widened, one through a view of its own.
  EXPECT_EQ(last->producer->inputs[0], seen);
  Edge* widened = first_reader->producer->inputs[0];
  EXPECT_EQ(widened->producer->inputs[0], rounded[0]);
  const Node* view = second_reader->producer->inputs[0]->producer;
  EXPECT_EQ(view->op_type, "Reshape");
  EXPECT_EQ(view->inputs[0], widened);
  EXPECT_EQ(second_reader->facts.type.type, ElementType::kFloat);
  // In order: made before it is read, rounded behind Tanh, widened before the first reader.
  std::vector<const Node*> order(c.graph.nodes.begin(), c.graph.nodes.end());
  const auto place = [&](const Edge* edge) {
    return std::find(order.begin(), order.end(), edge->producer) - order.begin();
  };
  EXPECT_EQ(order.size(), 9u);
  EXPECT_LT(place(seen), place(rounded[0]));
  EXPECT_LT(place(rounded[0]), place(widened));
  EXPECT_EQ(place(widened) + 2, place(first_reader));  // the view is between
  EXPECT_LT(place(view->outputs[0]), place(first_reader));
  // The rounding is forward: it is what is stashed now.
  const ForwardPart part = forward_part(c.graph, {&c.loss, 1});
  EXPECT_TRUE(part.nodes[rounded[0]->producer->id]);
  EXPECT_TRUE(part.stashed[rounded[0]->id]);
  EXPECT_FALSE(part.stashed[a->id]);
}

TEST(Stash, WhatMustBeExactStaysFloat) {
  for (const std::string_view op : {"Log", "LogSoftmax", "ReduceMax", "Exp"}) {
    StashCase c;
    Edge* a = c.build.op(op, {c.x});
    c.loss_is(c.sum(a));
    c.wants(c.build.op("Mul", {a, a}));
    EXPECT_EQ(c.stashed(), op == "Exp" ? Edges{a} : Edges{}) << op;
  }
}

TEST(Stash, WhatIsComparedWithAnotherStaysFloat) {
  for (const bool with_constant : {false, true}) {
    StashCase c;
    Edge *a = c.build.op("Exp", {c.x}), *b = c.build.op("Tanh", {c.x});
    c.loss_is(c.sum(c.build.op("Add", {a, b})));
    c.wants(c.build.op("Greater", {a, with_constant ? c.build.scalar(0.0f) : b}));
    c.wants(c.build.op("Neg", {a}));
    EXPECT_EQ(c.stashed(), with_constant ? Edges{a} : Edges{});
  }
}

TEST(Stash, InputsAndWhatOnlyOnePartReadsAreNone) {
  StashCase c;
  Edge* a = c.build.op("Exp", {c.x});
  c.loss_is(c.sum(a));
  c.wants(c.build.op("Neg", {c.x}));
  c.wants(c.build.op("Neg", {c.build.op("Tanh", {c.x})}));
  EXPECT_EQ(c.stashed(), Edges{});
}

}  // namespace
}  // namespace plimsoll
