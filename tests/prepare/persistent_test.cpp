// Edges that change from run to run are neither folded nor shared nor packed.
#include <gtest/gtest.h>

#include "optimize/graph_case.h"
#include "optimize/rewrites.h"
#include "prepare/weights.h"

namespace plimsoll {
namespace {

Edge* parameter(GraphCase& g, const std::vector<int64_t>& dims, const std::vector<float>& values) {
  Edge* edge = g.constant<float>(dims, values);
  edge->make_persistent();
  return edge;
}

TEST(Persistent, ConstantsFoldAndParametersDoNot) {
  for (const bool persistent : {false, true}) {
    GraphCase g;
    Edge* w = g.constant<float>({2}, {1, 2});
    if (persistent) w->make_persistent();
    Edge* sum = g.node("Add", {w, w});
    Edge* shaped = g.node("Unsqueeze", {w, g.constant<int64_t>({1}, {0})});
    g.output(sum);
    g.output(shaped);
    g.ready();
    fold_constants(g.root(), {});
    EXPECT_EQ(g.count("Add"), persistent ? 1 : 0);
    EXPECT_EQ(g.count("Unsqueeze"), persistent ? 1 : 0);
  }
}

TEST(Persistent, EqualConstantsBecomeOneAndEqualParametersStayTwo) {
  for (const bool persistent : {false, true}) {
    GraphCase g;
    Edge* x = g.input({2});
    Edge* a = persistent ? parameter(g, {2}, {1, 2}) : g.constant<float>({2}, {1, 2});
    Edge* b = persistent ? parameter(g, {2}, {1, 2}) : g.constant<float>({2}, {1, 2});
    Edge* left = g.node("Mul", {x, a});
    Edge* right = g.node("Add", {left, b});
    g.output(right);
    g.ready();
    share_subexpressions(g.root(), {});
    EXPECT_EQ(left->producer->inputs[1] == right->producer->inputs[1], !persistent);
  }
}

TEST(Persistent, WeightsAreCopiedAndNotPacked) {
  for (const bool persistent : {false, true}) {
    GraphCase g;
    Edge* x = g.input({4, 64});
    Edge* w = g.weights({64, 64});
    if (persistent) w->make_persistent();
    Edge* y = g.node("MatMul", {x, w});
    g.output(y);
    g.ready();
    Weights weights(g.root(), 1);
    EXPECT_EQ(weights.is_packed(*y->producer, 1), !persistent);
    EXPECT_EQ(weights.packed_bytes() > 0, !persistent);
    EXPECT_EQ(weights.weights_bytes() > 0, persistent);
    Budget budget("test", 0);
    weights.load(budget, [](std::span<const std::byte>) {});
    if (!persistent) continue;
    EXPECT_NE(weights.raw(*w), w->data->bytes.data()) << "a run would write into the model's bytes";
    EXPECT_EQ(std::memcmp(weights.raw(*w), w->data->bytes.data(), w->data->bytes.size()), 0);
  }
}

TEST(Persistent, NewDataStaysPersistent) {
  GraphCase g;
  Edge* w = parameter(g, {2}, {1, 2});
  const TensorData again = *w->data;
  w->set_data(g.arena(), again);
  EXPECT_TRUE(w->persistent);
  EXPECT_EQ(w->constant, nullptr);
  EXPECT_EQ(w->facts.constant, nullptr);
  EXPECT_NE(w->data, nullptr);
}

}  // namespace
}  // namespace plimsoll
