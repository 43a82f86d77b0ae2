// Nodes that run again so that less is kept: what fits, what it costs, and that it is right.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "prepare/requirement.h"
#include "support/training_models.h"

namespace plimsoll {
namespace {

struct Planned {
  int64_t bytes = 0;
  Recomputation again;
};

class Model {
 public:
  Model(const std::string& bytes, std::vector<std::vector<int64_t>> shapes)
      : bytes_(bytes), shapes_(std::move(shapes)), budget_("test", 0) {
    PrepareOptions options;
    options.check_plans = true;
    model_ = std::make_unique<PreparedModel>(std::as_bytes(std::span(bytes_)), options, budget_);
    model_->prepare();
  }
  Planned natural() { return plan(Effort::kThorough, 0); }
  Planned within(int64_t bytes) { return plan(Effort::kRecompute, bytes); }
  Planned smallest() { return plan(Effort::kRecompute, 0); }
  Graph& graph() { return model_->graph(); }
  PreparedModel& prepared() { return *model_; }
  Budget& budget() { return budget_; }

 private:
  Planned plan(Effort effort, int64_t bytes) {
    const ShapePlan plan(*model_, shapes_, budget_, effort, {}, bytes);
    return {plan.program().arena_bytes, plan.recomputation()};
  }
  const std::string bytes_;
  const std::vector<std::vector<int64_t>> shapes_;
  Budget budget_;
  std::unique_ptr<PreparedModel> model_;
};

std::map<std::string, Model*> training_models() {
  static Model chain(chain_step(24, 64), {{256, 64}});
  static Model transformer(transformer_step(6, 64), {{128, 64}});
  static Model with_dropout(transformer_step(6, 64, true), {{128, 64}});
  return {{"chain", &chain}, {"transformer", &transformer}, {"with dropout", &with_dropout}};
}

TEST(Recompute, NothingRunsAgainWhereAllFits) {
  for (const auto& [name, model] : training_models()) {
    const Planned natural = model->natural();
    EXPECT_TRUE(natural.again.empty()) << name;
    EXPECT_TRUE(model->within(natural.bytes).again.empty()) << name;
    EXPECT_FALSE(model->within(natural.bytes - 64).again.empty()) << name;
  }
}

TEST(Recompute, HalfAndAThirdOfTheBytesCostLittleTime) {
  for (const auto& [name, model] : training_models()) {
    const int64_t natural = model->natural().bytes;
    const Planned half = model->within(natural / 2), third = model->within(natural / 3);
    EXPECT_LE(half.bytes, natural / 2) << name;
    EXPECT_LE(third.bytes, natural / 3) << name;
    EXPECT_LE(half.again.extra_time, 0.25) << name;
    EXPECT_LE(third.again.extra_time, 0.40) << name;
    EXPECT_EQ(half.again.peak_bytes, half.bytes);
    EXPECT_EQ(half.again.saved_bytes, natural - half.bytes);
    EXPECT_GT(half.again.extra_operations, 0);
  }
}

TEST(Recompute, MoreBytesAreNeverSlower) {
  for (const auto& [name, model] : training_models()) {
    const int64_t natural = model->natural().bytes, smallest = model->smallest().bytes;
    double slower = 1e9;
    for (int64_t bytes = smallest; bytes <= natural; bytes += (natural - smallest) / 37 + 1) {
      const Planned plan = model->within(bytes);
      EXPECT_LE(plan.bytes, bytes) << name;
      EXPECT_LE(plan.again.extra_time, slower) << name << " with " << bytes;
      slower = plan.again.extra_time;
    }
  }
}

TEST(Recompute, SameQuestionSameAnswer) {
  Model a(transformer_step(4, 32), {{64, 32}}), b(transformer_step(4, 32), {{64, 32}});
  const int64_t bytes = a.natural().bytes * 2 / 5;
  const Planned first = a.within(bytes), second = b.within(bytes);
  ASSERT_EQ(first.again.nodes.size(), second.again.nodes.size());
  for (size_t i = 0; i < first.again.nodes.size(); ++i) {
    EXPECT_EQ(first.again.nodes[i].node->name, second.again.nodes[i].node->name);
    EXPECT_EQ(first.again.nodes[i].times, second.again.nodes[i].times);
  }
}

TEST(Recompute, LongSkipConnectionsOfInferenceToo) {
  Model model(skip_model(12, 64), {{512, 64}});
  const int64_t natural = model.natural().bytes;
  EXPECT_LE(model.within(natural * 2 / 3).bytes, natural * 2 / 3);
}

// Large products and small sums, all read early and late: where the sums are enough, no product runs again,
// though a sum would fit where a product does not.
TEST(Recompute, WhatIsCheapPerByteRunsAgainHoweverSmallItIs) {
  Tape tape;
  Edge *x = tape.input("x", {"rows", "64"}), *u = tape.input("u", {"rows", "256"});
  std::vector<Edge*> values;
  for (int i = 0; i < 6; ++i) {
    values.push_back(tape.op("MatMul", {x, tape.weight(64, 1024)}));
    for (int k = 0; k < 4; ++k) values.push_back(tape.op("Add", {u, tape.weight(1, 256)}));
  }
  Edge* sum = nullptr;
  for (Edge* value : values) {
    Edge* part = tape.op("ReduceMax", {value});
    sum = sum == nullptr ? part : tape.op("Add", {sum, part});
  }
  for (auto value = values.rbegin(); value != values.rend(); ++value)
    sum = tape.op("ReduceMin", {tape.op("Mul", {*value, sum})});
  tape.model.output(sum);
  Model model(tape.model.bytes(), {{256, 64}, {256, 256}});
  const int64_t natural = model.natural().bytes, sums = 24 * 256 * 256 * 4;
  const Planned plan = model.within(natural - sums * 3 / 4);
  EXPECT_FALSE(plan.again.empty());
  for (const auto& again : plan.again.nodes) EXPECT_EQ(again.node->op_type, "Add") << again.node->name;
}

TEST(Recompute, RefusesWithTheSmallestLimitThatWouldDo) {
  Model model(chain_step(24, 64), {{256, 64}});
  const std::vector<std::vector<int64_t>> shapes = {{256, 64}};
  int64_t least = 0;
  try {
    plan_within<ShapePlan>(model.prepared(), shapes, model.budget(), 100'000, false);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBudgetExceeded);
    const std::string text = error.what(), before = "the smallest limit that would do is ";
    least = std::stoll(text.substr(text.find(before) + before.size()));
  }
  const auto plan = plan_within<ShapePlan>(model.prepared(), shapes, model.budget(), least, false);
  EXPECT_LE(requirement(model.prepared(), *plan).peak_bytes, least);
  EXPECT_FALSE(plan->recomputation().empty());
  EXPECT_THROW(plan_within<ShapePlan>(model.prepared(), shapes, model.budget(), least - 1, false), Error);
}

}  // namespace
}  // namespace plimsoll
