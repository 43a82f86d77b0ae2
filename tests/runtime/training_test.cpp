// A TrainingSession: steps, memory, checkpoints, errors.
#include "plimsoll/training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "runtime/session_support.h"
#include "support/models.h"

namespace plimsoll {
namespace {

// y = relu(x w1) w2, from 4 to 3.
std::string two_layers() {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"batch", "4"});
  std::vector<float> w1, w2;
  for (int i = 0; i < 32; ++i) w1.push_back(static_cast<float>((i * 37) % 11 - 5) / 10);
  for (int i = 0; i < 24; ++i) w2.push_back(static_cast<float>((i * 29) % 13 - 6) / 10);
  Edge* hidden =
      model.node("Relu", {model.node("MatMul", {x, model.constant<float>("w1", {4, 8}, w1)})[0]})[0];
  model.output(model.node("MatMul", {hidden, model.constant<float>("w2", {8, 3}, w2)})[0]);
  return model.bytes();
}

class Training : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("plimsoll-training-" + std::to_string(::getpid()) +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    model_ = folder_ / "model.onnx";
    std::ofstream(model_, std::ios::binary) << two_layers();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static TrainingOptions options(bool keep_gradients = false) {
    TrainingOptions o;
    o.loss = LossType::kMSE;
    o.optimizer.type = OptimizerType::kAdam;
    o.optimizer.learning_rate = 0.05f;
    o.keep_gradients = keep_gradients;
    o.shapes = {{"x", {2, 4}}};
    o.session.intra_op_threads = 1;
    o.session.poison = true;
    return o;
  }
  static std::vector<Value> batch(int number = 0) {
    std::vector<float> x, y;
    for (int i = 0; i < 8; ++i) x.push_back(static_cast<float>((i * 7 + number * 3) % 5 - 2) / 2);
    for (int i = 0; i < 6; ++i) y.push_back(static_cast<float>((i * 5 + number * 2) % 3 - 1));
    return {floats({2, 4}, x), floats({2, 3}, y)};
  }
  static float step(TrainingSession& session, int number = 0) {
    return *session.TrainStep(batch(number))[0].GetTensorData<float>();
  }

  std::filesystem::path folder_;
  std::string model_;
};

TEST_F(Training, TheLossFalls) {
  TrainingSession session(Env(), model_, options());
  EXPECT_EQ(session.ParameterNames(), (std::vector<std::string>{"w1", "w2"}));
  EXPECT_EQ(session.InputNames(), (std::vector<std::string>{"x", "labels"}));
  const float first = step(session);
  for (int i = 0; i < 100; ++i) step(session);
  EXPECT_LT(step(session), first / 20);
  EXPECT_EQ(session.GetStep(), 102);
}

TEST_F(Training, StepsOfSeveralKindsAgree) {
  TrainingSession at_once(Env(), model_, options()), apart(Env(), model_, options(true));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(step(at_once, i), step(apart, i));
    apart.OptimizerStep();
    apart.LazyResetGrad();
  }
  for (const char* name : {"w1", "w2"})
    EXPECT_EQ(to_floats(at_once.GetParameter(name)), to_floats(apart.GetParameter(name)));
}

// Two halves, each scaled by a half, are the whole.
TEST_F(Training, GradientsAddUp) {
  TrainingOptions sgd = options(true);
  sgd.optimizer.type = OptimizerType::kSGD;
  TrainingSession once(Env(), model_, sgd), twice(Env(), model_, sgd);
  step(once);
  once.OptimizerStep();
  step(twice);
  step(twice);
  twice.SetGradientScale(0.5f);
  twice.OptimizerStep();
  const std::vector<float> a = to_floats(once.GetParameter("w1")), b = to_floats(twice.GetParameter("w1"));
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6f);
}

TEST_F(Training, ToldIsMeasuredAndALessByteIsRefused) {
  for (const bool keep : {false, true}) {
    TrainingOptions o = options(keep);
    const Plan told = TrainingSession::MakePlan(Env(), model_, o);
    TrainingSession session(Env(), model_, o);
    EXPECT_EQ(session.GetPlan().peak_bytes, told.peak_bytes);
    for (int i = 0; i < 3; ++i) {
      step(session);
      if (keep) session.OptimizerStep();
      session.EvalStep(batch());
    }
    const MemoryReport report = session.GetMemoryReport();
    EXPECT_EQ(report.peak_bytes, told.peak_bytes) << keep;
    EXPECT_GT(report[Account::kOptimizer].now_bytes, 0);
    EXPECT_EQ(report[Account::kGradients].now_bytes > 0, keep);
    o.session.memory_limit_bytes = told.minimum_limit_bytes;
    TrainingSession within(Env(), model_, o);
    step(within);
    o.session.memory_limit_bytes = told.minimum_limit_bytes - 1;
    EXPECT_EQ(code_of([&] { TrainingSession(Env(), model_, o); }), ErrorCode::kBudgetExceeded);
    EXPECT_EQ(code_of([&] { TrainingSession::MakePlan(Env(), model_, o); }), ErrorCode::kBudgetExceeded);
  }
}

TEST_F(Training, EvaluationChangesNothing) {
  TrainingSession session(Env(), model_, options());
  const std::vector<float> before = to_floats(session.ToBuffer());
  const std::vector<Value> results = session.EvalStep(batch());
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1].GetShape(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(to_floats(session.ToBuffer()), before);
  EXPECT_EQ(*results[0].GetTensorData<float>(), step(session));
}

TEST_F(Training, GoesOnFromACheckpointBitForBit) {
  const std::string path = folder_ / "checkpoint";
  for (const bool keep : {false, true}) {
    TrainingOptions o = options(keep);
    o.schedule.type = ScheduleOptions::Type::kCosine;
    o.schedule.total_steps = 20;
    const auto run = [&](TrainingSession& session, int from, int to) {
      for (int i = from; i < to; ++i) {
        step(session, i);
        if (keep && i % 3 == 2) session.OptimizerStep(), session.LazyResetGrad();
        session.SchedulerStep();
      }
    };
    TrainingSession through(Env(), model_, o);
    run(through, 0, 16);
    {
      TrainingSession before(Env(), model_, o);
      run(before, 0, 7);  // in the middle of a sum of gradients
      before.SaveCheckpoint(path);
    }
    TrainingSession after(Env(), model_, CheckpointState::LoadCheckpoint(path), o);
    run(after, 7, 16);
    EXPECT_EQ(to_floats(after.ToBuffer()), to_floats(through.ToBuffer())) << keep;
    EXPECT_EQ(after.GetStep(), through.GetStep());
    EXPECT_EQ(after.GetLearningRate(), through.GetLearningRate());
  }
}

TEST_F(Training, ExportsWhatItLearned) {
  TrainingSession session(Env(), model_, options());
  for (int i = 0; i < 10; ++i) step(session);
  const std::string path = folder_ / "trained.onnx";
  session.ExportModelForInferencing(path);
  Session inference(Env(), path, SessionOptions());
  const std::vector<Value> result = inference.Run({}, {"x"}, {batch()[0]}, {inference.GetOutputs()[0].name});
  const std::vector<float> expected = to_floats(session.EvalStep(batch())[1]), found = to_floats(result[0]);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5f);
}

TEST_F(Training, BuffersGoOutAndIn) {
  TrainingSession a(Env(), model_, options()), b(Env(), model_, options());
  step(a);
  EXPECT_NE(to_floats(a.ToBuffer()), to_floats(b.ToBuffer()));
  b.FromBuffer(a.ToBuffer());
  EXPECT_EQ(to_floats(a.ToBuffer()), to_floats(b.ToBuffer()));
  EXPECT_EQ(code_of([&] { b.FromBuffer(floats({2}, {1, 2})); }), ErrorCode::kInvalidArgument);
}

TEST_F(Training, ALossThatIsNoNumberChangesNothing) {
  for (const bool by_norm : {false, true}) {
    TrainingOptions o = options();
    if (by_norm) o.optimizer.max_grad_norm = 1;
    TrainingSession session(Env(), model_, o);
    const std::vector<float> before = to_floats(session.ToBuffer());
    std::vector<Value> inputs = batch();
    inputs[0].GetTensorMutableData<float>()[0] = NAN;
    EXPECT_FALSE(std::isfinite(*session.TrainStep(inputs)[0].GetTensorData<float>()));
    EXPECT_EQ(to_floats(session.ToBuffer()), before);
  }
}

// The same weights and data in double: the loss that is told is a float.
TEST_F(Training, ModelsOfDoublesAreTrained) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kDouble, {"batch", "4"});
  std::vector<double> w;
  for (int i = 0; i < 12; ++i) w.push_back(((i * 37) % 11 - 5) / 10.0);
  model.output(model.node("MatMul", {x, model.constant<double>("w", {4, 3}, w)})[0], ElementType::kDouble);
  std::ofstream(model_, std::ios::binary) << model.bytes();
  TrainingSession session(Env(), model_, options());
  const auto wide = [](const Value& value) {
    Value copy = Value::CreateTensor(ElementType::kDouble, value.GetShape());
    for (size_t i = 0; i < value.GetElementCount(); ++i)
      copy.GetTensorMutableData<double>()[i] = double{value.GetTensorData<float>()[i]};
    return copy;
  };
  const auto double_step = [&] {
    const std::vector<Value> given = batch();
    return *session.TrainStep({wide(given[0]), wide(given[1])})[0].GetTensorData<float>();
  };
  const float first = double_step();
  for (int i = 0; i < 50; ++i) double_step();
  EXPECT_LT(double_step(), first / 2);
}

TEST_F(Training, WrongThingsAreErrors) {
  TrainingSession session(Env(), model_, options());
  const auto wrong = ErrorCode::kInvalidArgument;
  EXPECT_EQ(code_of([&] { session.SetLearningRate(INFINITY); }), wrong);
  EXPECT_EQ(code_of([&] { session.SetLearningRate(NAN); }), wrong);
  EXPECT_EQ(code_of([&] { session.TrainStep({floats({0, 4}, {}), floats({0, 3}, {})}); }), wrong);
  EXPECT_EQ(code_of([&] { session.TrainStep({batch()[0]}); }), wrong);
  EXPECT_EQ(code_of([&] { session.TrainStep({batch()[0], floats({3, 3}, std::vector<float>(9))}); }), wrong);
  EXPECT_EQ(code_of([&] { session.OptimizerStep(); }), wrong);
  EXPECT_EQ(code_of([&] { session.SetState(CheckpointState()); }), wrong);
  TrainingOptions o = options();
  o.optimizer.learning_rate = INFINITY;
  EXPECT_EQ(code_of([&] { TrainingSession(Env(), model_, o); }), wrong);
  o = options();
  o.trainable = {"nothing*"};
  EXPECT_EQ(code_of([&] { TrainingSession(Env(), model_, o); }), wrong);
  EXPECT_GT(step(session), 0);  // and it goes on
}

TEST_F(Training, FrozenWeightsStay) {
  TrainingOptions o = options();
  o.frozen = {"w1*"};
  TrainingSession session(Env(), model_, o);
  EXPECT_EQ(session.ParameterNames(), std::vector<std::string>{"w2"});
}

// LayerNormalization and Gelu written out; the first one's scale has more dimensions than it needs, as some
// exporters write it, and numbers that are part of the functions are nodes.
std::string written_out() {
  ModelBuilder model(17);
  const auto number = [&](float value) {
    Attribute attribute;
    attribute.name = "value_float", attribute.type = AttributeType::kFloat, attribute.f = value;
    return model.node("Constant", {}, 1, {attribute})[0];
  };
  const auto op = [&](const char* type, std::initializer_list<Edge*> inputs) {
    return model.node(type, inputs)[0];
  };
  Edge* x = model.input("x", ElementType::kFloat, {"batch", "4"});
  std::vector<float> w;
  for (int i = 0; i < 256; ++i) w.push_back(static_cast<float>((i * 37) % 11 - 5) / 10);
  const auto weight = [&](const char* name, std::vector<int64_t> dims, size_t count) {
    return model.constant<float>(name, dims, {w.begin(), w.begin() + static_cast<ptrdiff_t>(count)});
  };
  Edge* h = op("MatMul", {x, weight("w1", {4, 8}, 32)});
  for (const char* scale : {"wide_scale", "scale"}) {
    static constexpr int64_t kLast[] = {-1};
    const std::vector<Attribute> last = {ModelBuilder::integers("axes", kLast)};
    Edge* centered = op("Sub", {h, model.node("ReduceMean", {h}, 1, last)[0]});
    Edge* variance = model.node("ReduceMean", {op("Pow", {centered, number(2)})}, 1, last)[0];
    Edge* normal = op("Div", {centered, op("Sqrt", {op("Add", {variance, number(1e-5f)})})});
    const std::vector<int64_t> dims = scale[0] == 'w' ? std::vector<int64_t>{1, 8} : std::vector<int64_t>{8};
    h = op("Mul", {normal, weight(scale, dims, 8)});
    Edge* part = op("Add", {op("Erf", {op("Div", {h, number(1.41421356f)})}), number(1)});
    h = op("Mul", {op("Mul", {h, part}), number(0.5f)});
  }
  model.output(op("MatMul", {h, weight("w2", {8, 3}, 24)}));
  return model.bytes();
}

TEST_F(Training, FunctionsWrittenOutAreTrainedAsOne) {
  std::ofstream(model_, std::ios::binary) << written_out();
  TrainingOptions plain = options(), recognized = options();
  for (TrainingOptions* o : {&plain, &recognized}) o->optimizer.type = OptimizerType::kSGD;
  plain.session.optimization_level = GraphOptimizationLevel::kBasic;
  TrainingSession written(Env(), model_, plain), one(Env(), model_, recognized);
  EXPECT_EQ(one.ParameterNames(), written.ParameterNames());
  EXPECT_EQ(one.ParameterNames().size(), 4u);
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(step(written, i), step(one, i), 1e-5f);
  for (const std::string& name : one.ParameterNames()) {
    SCOPED_TRACE(name);
    const std::vector<float> a = to_floats(written.GetParameter(name)), b = to_floats(one.GetParameter(name));
    for (size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-5f);
  }
  const auto normalizations = [&](const TrainingOptions& o) {
    const std::vector<std::string> steps = TrainingSession::MakePlan(Env(), model_, o).steps;
    return std::count_if(steps.begin(), steps.end(), [](const std::string& node) {
      return node.find("LayerNormalizationGradient") != std::string::npos;
    });
  };
  EXPECT_EQ(normalizations(recognized), 1);  // the wide scale is trained as it is
  EXPECT_EQ(normalizations(plain), 0);
}

TEST(Schedules, AreThoseOfPyTorch) {
  using Type = ScheduleOptions::Type;
  ScheduleOptions s;
  s.warmup_steps = 10;
  s.total_steps = 110;
  s.type = Type::kLinear;
  EXPECT_DOUBLE_EQ(schedule_factor(s, 0), 0);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 5), 0.5);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 10), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 60), 0.5);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 110), 0);
  s.type = Type::kCosine;
  EXPECT_NEAR(schedule_factor(s, 60), 0.5, 1e-12);
  s.warmup_steps = 0;
  s.type = Type::kStep;
  s.step_size = 3;
  EXPECT_DOUBLE_EQ(schedule_factor(s, 2), 1);
  EXPECT_NEAR(schedule_factor(s, 6), 0.01, 1e-12);
  s.type = Type::kExponential;
  s.gamma = 0.5;
  EXPECT_DOUBLE_EQ(schedule_factor(s, 3), 0.125);
  s.type = Type::kOneCycle;  // torch.optim.lr_scheduler.OneCycleLR(total_steps=110): 0.04 at 0, 1 at 32
  EXPECT_NEAR(schedule_factor(s, 0), 0.04, 1e-12);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 32), 1);
  EXPECT_NEAR(schedule_factor(s, 109), 0, 1e-12);
}

}  // namespace
}  // namespace plimsoll
