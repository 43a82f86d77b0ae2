// Inputs that are also initializers: constants unless a run gives them.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "onnx/tiny_model.h"
#include "runtime/session_support.h"

namespace plimsoll {
namespace {

using ::testing::ElementsAre;
using tiny::Proto;

// y = x * w + b, where w and b have defaults. b is a constant: it is no input.
std::string model_bytes(int64_t ir_version = 8) {
  const Proto graph = tiny::graph(
      {tiny::node("Mul", {"x", "w"}, {"product"}), tiny::node("Add", {"product", "b"}, {"y"})},
      {tiny::value("x", {2}), tiny::value("w", {"n"}), tiny::value("v", {1})}, {tiny::value("y", {2})},
      {tiny::floats("w", {10, 100}), tiny::floats("b", {1, 2}), tiny::floats("v", {5})});
  return Proto()
      .number(tiny::model_field::kIrVersion, ir_version)
      .message(tiny::model_field::kOpsetImport, tiny::opset("", 17))
      .message(tiny::model_field::kGraph, graph)
      .bytes;
}

std::vector<float> run(Session& session, const std::vector<std::string>& names,
                       const std::vector<Value>& values) {
  return to_floats(session.Run(RunOptions(), names, values, {"y"})[0]);
}

class OverridingFile : public ::testing::Test {
 protected:
  OverridingFile() {
    std::string name = "/tmp/plimsoll-overriding.XXXXXX";
    room_ = ::mkdtemp(name.data());
    std::ofstream(path(), std::ios::binary) << model_bytes();
  }
  ~OverridingFile() override { std::filesystem::remove_all(room_); }
  std::string path() const { return room_ / "model.onnx"; }

 private:
  std::filesystem::path room_;
};

SessionOptions naming(const std::vector<std::string>& names) {
  SessionOptions options;
  options.SetIntraOpNumThreads(1).overridden_initializers = names;
  return options;
}

}  // namespace

TEST(Overriding, DefaultsStandUnlessARunGivesThem) {
  for (int64_t ir_version : {3, 8}) {
    const std::string bytes = model_bytes(ir_version);
    Session session = open(bytes);
    ASSERT_EQ(session.GetInputs().size(), 1u);
    ASSERT_EQ(session.GetOverridableInitializers().size(), 2u);
    EXPECT_EQ(session.GetOverridableInitializers()[0].name, "w");
    EXPECT_EQ(session.GetOverridableInitializers()[0].symbols[0], "n") << "as declared";
    const Value x = floats({2}, {1, 2});
    EXPECT_THAT(run(session, {"x"}, {x}), ElementsAre(11, 202));
    EXPECT_THAT(run(session, {"x", "w"}, {x, floats({2}, {3, 4})}), ElementsAre(4, 10));
    EXPECT_THAT(run(session, {"w", "x"}, {floats({1}, {5}), x}), ElementsAre(6, 12)) << "another shape";
    EXPECT_THAT(run(session, {"x"}, {x}), ElementsAre(11, 202)) << "the default has not changed";
    EXPECT_THAT(run(session, {"v", "x"}, {floats({1}, {0}), x}), ElementsAre(11, 202)) << "used by nobody";
  }
}

TEST(Overriding, WhatIsNoInputCannotBeGiven) {
  const std::string bytes = model_bytes();
  Session session = open(bytes);
  const Value x = floats({2}, {1, 2});
  EXPECT_EQ(code_of([&] { run(session, {"x", "b"}, {x, x}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { run(session, {"w"}, {x}); }), ErrorCode::kInvalidArgument) << "x is missing";
  EXPECT_EQ(code_of([&] { open(bytes, naming({"b"})); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { open(bytes, naming({"nobody"})); }), ErrorCode::kInvalidArgument);
  Value wrong = Value::CreateTensor(ElementType::kInt64, {2});
  EXPECT_EQ(code_of([&] { run(session, {"x", "w"}, {x, wrong}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] {
              run(session, {"x", "w"}, {x, floats({3}, {1, 2, 3})});
            }),
            ErrorCode::kInvalidArgument);
  EXPECT_THAT(run(session, {"x"}, {x}), ElementsAre(11, 202)) << "usable after all that";
}

TEST(Overriding, NamedAheadItIsAnInputWithADefault) {
  const std::string bytes = model_bytes();
  Session session = open(bytes, naming({"w"}));
  ASSERT_EQ(session.GetInputs().size(), 2u);
  EXPECT_TRUE(session.GetInputs()[1].has_default);
  const int64_t before = session.GetMemoryReport().now_bytes;
  const Value x = floats({2}, {1, 2});
  EXPECT_THAT(run(session, {"x"}, {x}), ElementsAre(11, 202));
  EXPECT_THAT(run(session, {"x", "w"}, {x, floats({2}, {3, 4})}), ElementsAre(4, 10));
  EXPECT_LT(session.GetMemoryReport().now_bytes, before + (1 << 20)) << "no second preparation";
  IoBinding binding(session);
  binding.BindInput("x", x);
  binding.BindOutput("y");
  session.Run(RunOptions(), binding);
  EXPECT_THAT(to_floats(binding.GetOutputValues()[0]), ElementsAre(11, 202));
  binding.BindInput("w", floats({2}, {3, 4}));
  session.Run(RunOptions(), binding);
  EXPECT_THAT(to_floats(binding.GetOutputValues()[0]), ElementsAre(4, 10));
}

TEST_F(OverridingFile, ToldIsMeasuredInBothCases) {
  const Value x = floats({2}, {1, 2});
  for (const std::vector<std::string>& names : {std::vector<std::string>{}, std::vector<std::string>{"w"}}) {
    SessionOptions options = naming(names);
    Shapes shapes;
    if (!names.empty()) shapes["w"] = {2};
    const Plan plan = Model(Env(), path(), options).MakePlan(shapes, true);
    ASSERT_TRUE(plan.concrete);
    options.memory_limit_bytes = plan.minimum_limit_bytes;
    Session session(Env(), path(), options, [&](const std::vector<ValueInfo>&) { return shapes; });
    std::vector<std::string> given = {"x"};
    std::vector<Value> values = {x};
    if (!names.empty()) given.emplace_back("w"), values.push_back(floats({2}, {3, 4}));
    run(session, given, values);
    EXPECT_EQ(session.GetMemoryReport().peak_bytes, plan.peak_bytes);
    options.memory_limit_bytes -= 1;
    EXPECT_EQ(code_of([&] {
                Session(Env(), path(), options, [&](const std::vector<ValueInfo>&) { return shapes; });
              }),
              ErrorCode::kBudgetExceeded);
  }
}

TEST_F(OverridingFile, ASecondPreparationIsCountedAndStaysInsideTheLine) {
  const Value x = floats({2}, {1, 2}), w = floats({2}, {3, 4});
  const Env env;
  int64_t needed = 0;
  {
    Session session(env, path(), naming({}));
    run(session, {"x"}, {x});
    const int64_t before = session.GetMemoryReport().now_bytes;
    run(session, {"x", "w"}, {x, w});
    EXPECT_GT(session.GetMemoryReport().now_bytes, before);
    needed = session.GetMemoryReport().peak_bytes;
  }
  EXPECT_EQ(env.GetMemoryReport().now_bytes, 0) << "all of it is given back";
  SessionOptions options = naming({});
  options.memory_limit_bytes = needed;
  Session enough(env, path(), options);
  EXPECT_THAT(run(enough, {"x", "w"}, {x, w}), ElementsAre(4, 10));
  options.memory_limit_bytes = Model(env, path(), naming({})).MakePlan().minimum_limit_bytes;
  Session tight(env, path(), options);
  EXPECT_EQ(code_of([&] { run(tight, {"x", "w"}, {x, w}); }), ErrorCode::kBudgetExceeded);
  EXPECT_THAT(run(tight, {"x"}, {x}), ElementsAre(11, 202)) << "the session is usable";
}

TEST(Overriding, ThreadsMayOverrideAtOnce) {
  const std::string bytes = model_bytes();
  Session session = open(bytes, SessionOptions().SetMaxConcurrentRuns(2));
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Value x = floats({2}, {1, 2});
      const auto factor = static_cast<float>(t);
      for (int i = 0; i < 20; ++i) {
        const std::vector<float> y = t == 0 ? run(session, {"x"}, {x})
                                            : run(session, {"x", t % 2 == 0 ? "w" : "v", "w"},
                                                  {x, floats({1}, {factor}), floats({1}, {factor})});
        if (y == (t == 0 ? std::vector<float>{11, 202} : std::vector<float>{factor + 1, 2 * factor + 2}))
          ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 80);
}

}  // namespace plimsoll
