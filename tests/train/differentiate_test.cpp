#include "train/differentiate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/gradient.h"
#include "optimize/graph_case.h"

namespace plimsoll {
namespace {

std::vector<Edge*> gradients_of(GraphCase& g, Edge* y, const std::vector<Edge*>& xs) {
  const Cotangent of_y[] = {{y, nullptr}};
  return differentiate(g.root(), of_y, xs);
}

TEST(Differentiate, SumsTheUsesOfAnEdge) {
  GraphCase g;
  Edge* x = g.input({3});
  Edge* y = g.node("Mul", {g.node("Add", {x, x}), x});  // 2 x^2
  g.output(x);
  g.ready();
  const Edge* dx = gradients_of(g, y, {x})[0];
  EXPECT_EQ(to_string(dx->facts.type.dims), "[3]");
  g.output(const_cast<Edge*>(dx));
  const auto values = g.run();
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(values[1][i], 4 * values[0][i], 1e-5);
}

TEST(Differentiate, BuildsOnlyWhatIsWanted) {
  GraphCase g;
  Edge* x = g.input({2, 3});
  Edge* w = g.weights({3, 4});
  Edge* v = g.weights({3, 4});
  Edge* unrelated = g.node("Relu", {g.node("MatMul", {x, v})});
  Edge* y = g.node("MatMul", {x, w});
  g.ready();
  const int before = g.node_count();
  const std::vector<Edge*> found = gradients_of(g, y, {w, v});
  EXPECT_NE(found[0], nullptr);
  EXPECT_EQ(found[1], nullptr);
  EXPECT_EQ(unrelated->facts.type.rank(), 2u);
  std::vector<std::string> made;
  for (int i = before; i < g.node_count(); ++i)
    made.emplace_back(g.root().nodes[static_cast<size_t>(i)]->op_type);
  EXPECT_EQ(made, (std::vector<std::string>{"Expand", "FusedMatMul"}));  // none for x
}

TEST(Differentiate, NamesNewNodesAfterTheirForwardOnesInTheVersionOfGradients) {
  GraphCase g(11);
  Edge* x = g.input({4});
  Edge* y = g.node("Relu", {g.node("Mul", {x, x})});
  g.ready();
  const size_t before = g.root().nodes.size();
  const std::string relu(y->producer->name);
  gradients_of(g, y, {x});
  bool found = false;
  for (size_t i = before; i < g.root().nodes.size(); ++i) {
    const Node* node = g.root().nodes[i];
    if (node->domain.empty()) {
      EXPECT_EQ(node->opset, kGradientOpset);
    }
    EXPECT_NE(node->op, nullptr);
    EXPECT_TRUE(node->outputs[0]->facts.type.ranked);
    found |= node->name.starts_with(relu + "_grad/");
  }
  EXPECT_TRUE(found);
}

TEST(Differentiate, TellsEverythingWithoutAGradientAtOnce) {
  GraphCase g;
  Edge* x = g.input({2, 2});
  Edge* a = g.node("Unique", {g.node("Relu", {x})});
  Edge* b = g.node("Unique", {x});
  Edge* aside = g.node("NonZero", {x});
  Edge* y = g.node("Mul", {a, b});
  g.output(aside);
  g.ready();
  const size_t nodes = g.root().nodes.size(), constants = g.root().initializers.size();
  try {
    gradients_of(g, y, {x});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotImplemented);
    EXPECT_THAT(error.what(), testing::HasSubstr(a->producer->label()));
    EXPECT_THAT(error.what(), testing::HasSubstr(b->producer->label()));
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("NonZero")));
  }
  EXPECT_EQ(g.root().nodes.size(), nodes);
  EXPECT_EQ(g.root().initializers.size(), constants);
}

TEST(Differentiate, TakesXsAsIndependent) {
  GraphCase g;
  Edge* x = g.input({2});
  Edge* h = g.node("Mul", {x, x});
  Edge* y = g.node("Mul", {h, x});
  g.output(x);
  g.output(h);
  g.ready();
  const std::vector<Edge*> found = gradients_of(g, y, {x, h});
  g.output(found[0]);
  g.output(found[1]);
  const auto values = g.run();
  EXPECT_NEAR(values[2][0], values[1][0], 1e-5);  // h, and not 3 x^2
  EXPECT_NEAR(values[3][0], values[0][0], 1e-5);
}

TEST(Differentiate, StartsFromSeveralCotangents) {
  GraphCase g;
  Edge* x = g.input({2});
  Edge* of_z = g.input({2});
  Edge* y = g.node("Mul", {x, g.scalar(3)});
  Edge* z = g.node("Mul", {x, g.scalar(5)});
  g.ready();
  const Cotangent cotangents[] = {{y, nullptr}, {z, of_z}};
  Edge* const xs[] = {x};
  g.output(of_z);
  g.output(differentiate(g.root(), cotangents, xs)[0]);
  const auto values = g.run();
  EXPECT_NEAR(values[1][1], 3 + 5 * values[0][1], 1e-5);
}

TEST(Differentiate, RefusesIntegers) {
  GraphCase g;
  Edge* x = g.input({2}, ElementType::kInt64);
  Edge* y = g.node("Add", {x, x});
  g.ready();
  EXPECT_THROW(gradients_of(g, y, {x}), Error);
}

TEST(Differentiate, KeepsASymbolicBatch) {
  GraphCase g;
  Edge* x = g.input({-1, 3});
  Edge* w = g.weights({3, 2});
  Edge* b = g.weights({2});
  Edge* y = g.node("Relu", {g.node("Add", {g.node("MatMul", {x, w}), b})});
  g.ready();
  const std::vector<Edge*> found = gradients_of(g, y, {w, b, x});
  EXPECT_EQ(to_string(found[0]->facts.type.dims), "[3, 2]");
  EXPECT_EQ(to_string(found[1]->facts.type.dims), "[2]");
  EXPECT_EQ(to_string(found[2]->facts.type.dims), "[s1, 3]");
  for (Edge* edge : found) g.output(edge);
  g.optimize_all();
}

}  // namespace
}  // namespace plimsoll
