#include "train/lower_gradient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/training_common.h"
#include "optimize/graph_case.h"

namespace plimsoll {
namespace {

// d y / d xs at the values of `inputs`.
std::vector<Edge*> gradient(GraphCase& g, const std::vector<Edge*>& xs, std::string_view y,
                            const std::vector<Edge*>& inputs) {
  std::vector<std::string_view> names;
  for (const Edge* x : xs) names.push_back(x->name);
  Attribute of_xs, of_y;
  of_xs.name = "xs", of_xs.type = AttributeType::kStrings, of_xs.strings = g.arena().copy(names);
  of_y.name = "y", of_y.type = AttributeType::kString, of_y.s = y;
  std::vector<Edge*> outputs;
  for (size_t i = 0; i < xs.size(); ++i)
    outputs.push_back(g.root().add_edge(fmt::format("d{}_{}", i, g.root().edge_count())));
  const Attribute attributes[] = {of_xs, of_y};
  g.root().add_node(kTrainingDomain, "Gradient", "", inputs, outputs, attributes);
  return outputs;
}

TEST(LowerGradient, TakesOtherValuesThanTheNamedOnes) {
  GraphCase g;
  Edge* x = g.input({3});
  Edge* other = g.input({3});
  Edge* y = g.node("Mul", {g.node("Mul", {x, x}), x});
  g.output(other);
  g.output(y);
  g.output(gradient(g, {x}, y->name, {other})[0]);
  g.ready();
  EXPECT_TRUE(lower_gradients(g.root()));
  const auto values = g.run();
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(values[2][i], 3 * values[0][i] * values[0][i], 1e-4);
}

TEST(LowerGradient, DifferentiatesGradientsAgain) {
  GraphCase g;
  Edge* x = g.input({3});
  Edge* y = g.node("Mul", {g.node("Mul", {x, x}), x});
  Edge* first = gradient(g, {x}, y->name, {x})[0];
  Edge* second = gradient(g, {x}, first->name, {x})[0];
  g.output(x);
  g.output(first);
  g.output(second);
  g.ready();
  lower_gradients(g.root());
  EXPECT_EQ(g.count("Gradient", std::string(kTrainingDomain)), 0);
  infer_graph(g.root());
  const auto values = g.run();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(values[1][i], 3 * values[0][i] * values[0][i], 1e-4);
    EXPECT_NEAR(values[2][i], 6 * values[0][i], 1e-4);
  }
}

TEST(LowerGradient, GivesZerosWhereNothingDepends) {
  GraphCase g;
  Edge* x = g.input({2, 3});
  Edge* y = g.node("Relu", {g.input({4})});
  g.output(gradient(g, {x}, y->name, {x})[0]);
  g.ready();
  lower_gradients(g.root());
  EXPECT_EQ(g.run()[0], std::vector<float>(6, 0.0f));
}

TEST(LowerGradient, NamesWhatIsNotThere) {
  GraphCase g;
  Edge* x = g.input({2});
  g.output(gradient(g, {x}, "nowhere", {x})[0]);
  g.ready();
  try {
    lower_gradients(g.root());
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("there is no tensor 'nowhere'"));
  }
}

}  // namespace
}  // namespace plimsoll
