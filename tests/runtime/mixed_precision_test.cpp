// Training in mixed precision: what the backward part reads is kept in bfloat16, where that lowers the peak.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "plimsoll/training.h"
#include "runtime/session_support.h"

namespace plimsoll {
namespace {

constexpr int64_t kBatch = 1024, kWidth = 64;
constexpr int kLayers = 5;

std::vector<float> numbers(int64_t count, int seed, float scale) {
  std::vector<float> values;
  uint32_t state = static_cast<uint32_t>(seed) * 2654435761u + 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back((static_cast<float>(state >> 8) * 0x1p-24f - 0.5f) * scale);
  }
  return values;
}

// Products, activations and norms, one behind the other.
std::string deep_model() {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"batch", std::to_string(kWidth)});
  const std::vector<float> ones(kWidth, 1.0f);
  for (int i = 0; i < kLayers; ++i) {
    const std::string number = std::to_string(i);
    Edge* w = model.constant<float>("w" + number, {kWidth, kWidth}, numbers(kWidth * kWidth, i + 1, 0.4f));
    Edge* scale = model.constant<float>("s" + number, {kWidth}, ones);
    Edge* product = model.node("MatMul", {x, w})[0];
    Edge* norm = model.node("LayerNormalization", {product, scale})[0];
    x = model.node(i % 2 == 0 ? "Relu" : "Tanh", {norm})[0];
  }
  model.output(x);
  return model.bytes();
}

class MixedPrecision : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("plimsoll-mixed-" + std::to_string(::getpid()) +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    model_ = folder_ / "model.onnx";
    std::ofstream(model_, std::ios::binary) << deep_model();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static TrainingOptions options(TrainingPrecision precision, bool keep_gradients = false) {
    TrainingOptions o;
    o.loss = LossType::kMSE;
    o.optimizer.type = OptimizerType::kAdam;
    o.optimizer.learning_rate = 0.01f;
    o.keep_gradients = keep_gradients;
    o.precision = precision;
    o.shapes = {{"x", {kBatch, kWidth}}};
    o.session.intra_op_threads = 1;
    o.session.poison = true;
    return o;
  }
  static std::vector<Value> batch(int number) {
    return {floats({kBatch, kWidth}, numbers(kBatch * kWidth, 10 + number, 2)),
            floats({kBatch, kWidth}, numbers(kBatch * kWidth, 50 + number, 1))};
  }
  static float step(TrainingSession& session, int number) {
    return *session.TrainStep(batch(number))[0].GetTensorData<float>();
  }
  static constexpr TrainingPrecision kFloat = TrainingPrecision::kFloat,
                                     kBFloat16 = TrainingPrecision::kBFloat16;

  std::filesystem::path folder_;
  std::string model_;
};

TEST_F(MixedPrecision, LessIsToldAndMeasured) {
  const Plan plain = TrainingSession::MakePlan(Env(), model_, options(kFloat));
  EXPECT_TRUE(plain.rounded.empty());
  for (const bool keep : {false, true}) {
    TrainingOptions o = options(kBFloat16, keep);
    const Plan told = TrainingSession::MakePlan(Env(), model_, o);
    ASSERT_FALSE(told.rounded.empty());
    for (const RoundedValue& value : told.rounded)
      EXPECT_EQ(value.saved_bytes, kBatch * kWidth * 2) << value.name;
    TrainingSession session(Env(), model_, o);
    for (int i = 0; i < 3; ++i) {
      step(session, i);
      if (keep) session.OptimizerStep();
      session.EvalStep(batch(i));
    }
    EXPECT_EQ(session.GetMemoryReport().peak_bytes, told.peak_bytes) << keep;
    if (!keep) {
      EXPECT_LT(told.accounts[static_cast<size_t>(Account::kPlanned)],
                plain.accounts[static_cast<size_t>(Account::kPlanned)]);
    }
    o.session.memory_limit_bytes = told.minimum_limit_bytes;
    TrainingSession within(Env(), model_, o);
    step(within, 0);
    if (keep) within.OptimizerStep();
    within.EvalStep(batch(0));
    EXPECT_EQ(within.GetMemoryReport().peak_bytes, within.GetPlan().peak_bytes);
    o.session.memory_limit_bytes = told.minimum_limit_bytes - 1;
    EXPECT_EQ(code_of([&] { TrainingSession(Env(), model_, o); }), ErrorCode::kBudgetExceeded);
  }
}

// Forward, everything is as before; gradients are those of rounded results.
TEST_F(MixedPrecision, TheLossIsThatOfFloat) {
  TrainingSession plain(Env(), model_, options(kFloat)), mixed(Env(), model_, options(kBFloat16));
  EXPECT_EQ(step(plain, 0), step(mixed, 0));
  EXPECT_NE(to_floats(plain.ToBuffer()), to_floats(mixed.ToBuffer()));
  float first = 0, last_plain = 0, last_mixed = 0;
  for (int i = 0; i < 60; ++i) {
    last_plain = step(plain, 0), last_mixed = step(mixed, 0);
    if (i == 0) first = last_plain;
  }
  EXPECT_LT(last_plain, first / 2);
  EXPECT_NEAR(last_mixed, last_plain, 0.02f * last_plain);
}

// What is rounded does not depend on the limit, nor on what runs again.
TEST_F(MixedPrecision, EveryPlanGivesTheSameBits) {
  const Plan told = TrainingSession::MakePlan(Env(), model_, options(kBFloat16));
  const int64_t least = told.minimum_limit_bytes, most = told.peak_bytes;
  ASSERT_LT(least, most);
  std::vector<std::vector<float>> learned;
  size_t again = 0;
  for (const int64_t limit : {int64_t{0}, (least + most) / 2, least}) {
    TrainingOptions o = options(kBFloat16);
    o.session.memory_limit_bytes = limit;
    TrainingSession session(Env(), model_, o);
    again += session.GetPlan().recomputed.size();
    for (int i = 0; i < 4; ++i) step(session, i);
    learned.push_back(to_floats(session.ToBuffer()));
    EXPECT_EQ(learned.back(), learned.front()) << limit;
  }
  EXPECT_GT(again, 0u);
}

TEST_F(MixedPrecision, CheckpointsAreOfBothPrecisions) {
  const std::string path = folder_ / "checkpoint";
  for (const auto& [before, after] :
       {std::pair{kBFloat16, kBFloat16}, {kFloat, kBFloat16}, {kBFloat16, kFloat}}) {
    TrainingSession first(Env(), model_, options(before));
    for (int i = 0; i < 4; ++i) step(first, i);
    first.SaveCheckpoint(path);
    TrainingSession second(Env(), model_, CheckpointState::LoadCheckpoint(path), options(after));
    EXPECT_EQ(to_floats(second.ToBuffer()), to_floats(first.ToBuffer()));
    EXPECT_EQ(second.GetStep(), 4);
    for (int i = 4; i < 8; ++i) {
      EXPECT_TRUE(std::isfinite(step(second, i)));
      step(first, i);
    }
    EXPECT_EQ(to_floats(second.ToBuffer()) == to_floats(first.ToBuffer()), before == after);
  }
}

// The range is that of float: what overflows 16 bits of half precision does not here.
TEST_F(MixedPrecision, LargeNumbersStayFinite) {
  TrainingSession session(Env(), model_, options(kBFloat16));
  std::vector<Value> inputs = batch(0);
  for (size_t i = 0; i < inputs[0].GetElementCount(); ++i) inputs[0].GetTensorMutableData<float>()[i] *= 1e6f;
  EXPECT_TRUE(std::isfinite(*session.TrainStep(inputs)[0].GetTensorData<float>()));
  for (const float value : to_floats(session.ToBuffer())) EXPECT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace plimsoll
