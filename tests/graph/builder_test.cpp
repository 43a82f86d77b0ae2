#include "graph/builder.h"

#include <gtest/gtest.h>

#include "optimize/graph_case.h"

namespace plimsoll {
namespace {

std::vector<std::string> op_types(const Graph& graph) {
  std::vector<std::string> found;
  for (const Node* node : graph.nodes) found.emplace_back(node->op_type);
  return found;
}

TEST(GraphBuilder, WritesNodesBeforeItsPlaceInTheOrderOfTheCalls) {
  GraphCase g;
  Edge* x = g.input({2, 3});
  Edge* y = g.node("Relu", {x});
  Edge* z = g.node("Neg", {y});
  g.output(z);
  g.ready();
  GraphBuilder builder(*z->producer, resolve);
  Edge* doubled = builder.op("Mul", {y, builder.scalar(2.0f)});
  Edge* flipped =
      builder.op("Transpose", {doubled},
                 builder.attributes().set("perm", std::span<const int64_t>(std::vector<int64_t>{1, 0})));
  EXPECT_EQ(op_types(g.root()), (std::vector<std::string>{"Relu", "Mul", "Transpose", "Neg"}));
  EXPECT_EQ(to_string(flipped->facts.type.dims), "[3, 2]");
  EXPECT_TRUE(flipped->name.starts_with(z->producer->name));
  EXPECT_NE(flipped->name, doubled->name);
  g.output(flipped);
  const auto values = g.run();
  EXPECT_EQ(values[1][1], -2 * values[0][3]);  // (0, 1) of the flipped is (1, 0) of what was negated
}

TEST(GraphBuilder, AppendsUnresolvedNodesWithoutAResolver) {
  GraphCase g;
  Edge* x = g.input({4});
  GraphBuilder builder(g.root(), "made");
  const int64_t parts[] = {1, 3};
  Edge* inputs[] = {x, builder.integers(parts)};
  Node* split = builder.emit("", "Split", inputs, {}, 2);
  ASSERT_EQ(split->outputs.size(), 2u);
  EXPECT_EQ(split->op, nullptr);
  EXPECT_EQ(g.root().nodes.back(), split);
  g.output(split->outputs[1]);
  g.ready();
  EXPECT_EQ(to_string(split->outputs[1]->facts.type.dims), "[3]");
}

TEST(GraphBuilder, RefusesWhatTheOperatorRefuses) {
  GraphCase g;
  Edge* x = g.input({2, 3});
  Edge* y = g.input({4, 5});
  GraphBuilder builder(g.root(), "made", resolve);
  EXPECT_THROW(builder.op("MatMul", {x, y}), Error);
  EXPECT_THROW(builder.op("NoSuchOperator", {x}), Error);
}

}  // namespace
}  // namespace plimsoll
