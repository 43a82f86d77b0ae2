// Every allocation fails once: heap and mappings, while loading and while running.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "plimsoll/gradient.h"
#include "plimsoll/training.h"
#include "support/heap_watch.h"
#include "support/model_builder.h"
#include "support/models.h"

namespace {

struct MapFaults {
  bool watching = false;
  long calls = 0;
  long fail_at = 0;
};
thread_local MapFaults map_faults;

}  // namespace

// Our arenas and files come from here; the loader's and glibc's own calls do not.
extern "C" void* mmap(void* address, size_t length, int protection, int flags, int fd,
                      off_t offset) noexcept {
  if (map_faults.watching && ++map_faults.calls == map_faults.fail_at) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, length, protection, flags, fd, offset));
}

namespace plimsoll {
namespace {

struct FaultModel {
  std::string name;
  std::string bytes;  // empty: read `path`
  std::string path;
  Shapes shapes;
};

std::string loop_model() {
  ModelBuilder model;
  Edge* count = model.constant<int64_t>("count", {}, {3});
  Edge* x = model.input("x", ElementType::kFloat, {"n"});
  Graph* body = model.new_body();
  model.body_input(*body, "i", ElementType::kInt64, {});
  Edge* go_on = model.body_input(*body, "cond", ElementType::kBool, {});
  Edge* sum = model.body_input(*body, "sum", ElementType::kFloat, {"m"});
  body->outputs.push_back(model.node_in(*body, "Identity", {go_on})[0]);
  body->outputs.push_back(model.node_in(*body, "Concat", {sum, x}, 1, {ModelBuilder::integer("axis", 0)})[0]);
  model.output(model.node("Loop", {count, nullptr, x}, 1, {ModelBuilder::body("body", body)})[0]);
  return model.bytes();
}

std::string chain_model() {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"n"});
  Edge* w = model.constant<float>("w", {16, 16}, std::vector<float>(256, 0.25f));
  Edge* value = x;
  const int64_t shape[] = {-1, 16};
  value = model.node("Reshape", {value, model.constant<int64_t>("s", {2}, {shape[0], shape[1]})})[0];
  for (int i = 0; i < 3; ++i) value = model.node("Relu", {model.node("MatMul", {value, w})[0]})[0];
  model.output(value);
  return model.bytes();
}

std::vector<FaultModel> models() {
  return {{"digits", "", model_path("digits"), {{"image", {4, 1, 8, 8}}}},
          {"loop", loop_model(), "", {{"x", {64}}}},
          {"chain", chain_model(), "", {{"x", {640}}}}};
}

Session open(const Env& env, const FaultModel& model) {
  const SessionOptions options = SessionOptions().SetIntraOpNumThreads(1);
  if (model.bytes.empty()) return Session(env, model.path, options);
  return Session(env, model.bytes.data(), model.bytes.size(), options);
}

std::vector<Value> run(Session& session, const FaultModel& model) {
  std::vector<std::string> names, wanted;
  std::vector<Value> inputs;
  for (const ValueInfo& info : session.GetInputs()) {
    names.push_back(info.name);
    inputs.push_back(filled(info.type, model.shapes.at(info.name)));
  }
  for (const ValueInfo& info : session.GetOutputs()) wanted.push_back(info.name);
  return session.Run({}, names, inputs, wanted);
}

// Fails the n-th heap call or mapping of `action`, for every n, until it succeeds. An Error or
// bad_alloc must come of it; whatever else comes is a failure of the test.
template <typename Action, typename Check>
long fail_each(bool mappings, Action&& action, Check&& check) {
  for (long n = 1;; ++n) {
    bool failed = false;
    long calls = 0;
    {
      heap::Watch watch(mappings ? 0 : n);
      if (!mappings) {
        map_faults.watching = false;
      } else {
        map_faults = {true, 0, n};
      }
      try {
        action();
      } catch (const Error&) {
        failed = true;
      } catch (const std::bad_alloc&) {
        failed = true;
      }
      calls = mappings ? map_faults.calls : watch.stop();
      map_faults.watching = false;
    }
    check();
    if (calls < n) return n - 1;
    // A heap call may fail without harm (a free list that was not filled); a mapping may not.
    if (mappings) {
      EXPECT_TRUE(failed) << "mapping " << n << " failed and nobody noticed";
    }
  }
}

class Faults : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const bool mappings = GetParam();
    if (kSanitized && !mappings) GTEST_SKIP() << "the sanitizer has a heap of its own";
  }
};

}  // namespace

TEST_P(Faults, WhileLoading) {
  for (const FaultModel& model : models()) {
    const Env env;
    const long faults = fail_each(
        GetParam(), [&] { open(env, model); },
        [&] { ASSERT_EQ(env.GetMemoryReport().now_bytes, 0) << model.name; });
    std::printf("%s: %ld faults while loading\n", model.name.c_str(), faults);
    EXPECT_GT(faults, 0);
  }
}

TEST_P(Faults, WhileRunning) {
  for (const FaultModel& model : models()) {
    const Env env;
    {
      Session reference = open(env, model);
      const std::vector<Value> expected = run(reference, model);
      Session session = open(env, model);
      const long faults = fail_each(
          GetParam(), [&] { run(session, model); }, [] {});
      std::printf("%s: %ld faults while running\n", model.name.c_str(), faults);
      EXPECT_GT(faults, 0);
      // After all of them the session is usable and right.
      const std::vector<Value> result = run(session, model);
      ASSERT_EQ(result[0].GetByteCount(), expected[0].GetByteCount());
      EXPECT_EQ(std::memcmp(result[0].GetData(), expected[0].GetData(), expected[0].GetByteCount()), 0);
      EXPECT_EQ(session.GetMemoryReport()[Account::kDynamic].now_bytes, 0);
      EXPECT_EQ(session.GetMemoryReport()[Account::kBound].now_bytes, 0);
    }
    EXPECT_EQ(env.GetMemoryReport().now_bytes, 0);
  }
}

// Training a small model: opening it, its steps, its checkpoints.
class TrainingFaults : public Faults {
 protected:
  void SetUp() override {
    Faults::SetUp();
    folder_ = std::filesystem::temp_directory_path() / ("plimsoll-faults-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    model_ = folder_ / "model.onnx";
    std::ofstream(model_, std::ios::binary) << chain_model();
    options_.loss = LossType::kMSE;
    options_.optimizer.type = OptimizerType::kAdam;
    options_.optimizer.learning_rate = 0.05f;
    options_.optimizer.max_grad_norm = 1.0f;
    options_.shapes = {{"x", {32}}};
    options_.session.intra_op_threads = 1;
    batch_ = {filled(ElementType::kFloat, {32}), filled(ElementType::kFloat, {2, 16})};
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  TrainingSession open(const Env& env) const { return TrainingSession(env, model_, options_); }
  // Bit by bit.
  static void expect_equal(const TrainingSession& found, const TrainingSession& expected) {
    for (const std::string& name : expected.ParameterNames()) {
      const Value a = found.GetParameter(name), b = expected.GetParameter(name);
      EXPECT_EQ(std::memcmp(a.GetData(), b.GetData(), b.GetByteCount()), 0) << name;
    }
  }

  std::filesystem::path folder_;
  std::string model_;
  TrainingOptions options_;
  std::vector<Value> batch_;
};

TEST_P(TrainingFaults, WhileOpening) {
  const Env env;
  const long faults = fail_each(
      GetParam(), [&] { open(env); }, [&] { ASSERT_EQ(env.GetMemoryReport().now_bytes, 0); });
  std::printf("%ld faults while opening a training\n", faults);
  EXPECT_GT(faults, GetParam() ? 2 : 100);
}

// A step is made whole or not at all.
TEST_P(TrainingFaults, InSteps) {
  for (const bool keep_gradients : {false, true}) {
    options_.keep_gradients = keep_gradients;
    const Env env;
    TrainingSession session = open(env), expected = open(env);
    // What comes through is done to both.
    const auto fail_each_of = [&](const auto& action) {
      bool made = false;
      return fail_each(
          GetParam(),
          [&] {
            made = false;
            action(session);
            made = true;
          },
          [&] {
            if (made) action(expected);
          });
    };
    long faults = 0;
    for (int round = 0; round < 3; ++round) {
      faults += fail_each_of([&](TrainingSession& one) { one.TrainStep(batch_); });
      if (!keep_gradients) continue;
      faults += fail_each_of([&](TrainingSession& one) { one.OptimizerStep(); });
      faults += fail_each_of([&](TrainingSession& one) { one.LazyResetGrad(); });
    }
    std::printf("%ld faults in steps%s\n", faults, keep_gradients ? " whose gradients are kept" : "");
    expect_equal(session, expected);
    EXPECT_EQ(session.GetStep(), expected.GetStep());
  }
}

TEST_P(TrainingFaults, InCheckpoints) {
  const Env env;
  TrainingSession session = open(env), expected = open(env);
  session.TrainStep(batch_);
  const std::string path = folder_ / "checkpoint";
  session.SaveCheckpoint(path);
  const auto read = [](const std::string& name) {
    std::ifstream file(name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string whole = read(path);
  const long saving = fail_each(
      GetParam(), [&] { session.SaveCheckpoint(path); }, [&] { ASSERT_EQ(read(path), whole); });
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2) << "something is left behind";
  const long loading = fail_each(
      GetParam(), [&] { CheckpointState::LoadCheckpoint(path); }, [] {});
  std::printf("%ld faults while a checkpoint is written, %ld while it is read\n", saving, loading);
  EXPECT_GT(loading, 0);
  expected.TrainStep(batch_);
  expect_equal(TrainingSession(env, model_, CheckpointState::LoadCheckpoint(path), options_), expected);
}

TEST_P(TrainingFaults, WhileTheTwoPartsOfAGradientAreOpened) {
  const std::string bytes = chain_model();
  GradientOptions options;
  options.inputs = {"x"};
  options.session.intra_op_threads = 1;
  options.session.AddFreeDimensionOverrideByName("n", 32);
  const Env env;
  const long faults = fail_each(
      GetParam(), [&] { OpenGradientSessions(env, bytes.data(), bytes.size(), options); },
      [&] { ASSERT_EQ(env.GetMemoryReport().now_bytes, 0); });
  std::printf("%ld faults while the two parts of a gradient are opened\n", faults);
  EXPECT_GT(faults, 0);
}

const auto kKinds = [](const auto& kind) { return std::string(kind.param ? "Mappings" : "HeapCalls"); };
INSTANTIATE_TEST_SUITE_P(Of, TrainingFaults, testing::Values(false, true), kKinds);
INSTANTIATE_TEST_SUITE_P(Of, Faults, testing::Values(false, true), kKinds);

}  // namespace plimsoll
