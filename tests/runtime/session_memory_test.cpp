#include "runtime/session_support.h"

namespace plimsoll {

TEST(Session, RunsAndTellsItsPeakToTheByte) {
  const std::string bytes = chain_model(5);
  Session session = open(bytes);
  const Plan plan = session.Prepare({{"x", {3, 64}}});
  const std::vector<Value> result = session.Run({}, {"x"}, {floats({3, 64}, std::vector<float>(192, 0.5f))},
                                                {session.GetOutputs()[0].name});
  EXPECT_EQ(result[0].GetShape(), (std::vector<int64_t>{3, 64}));
  EXPECT_NEAR(to_floats(result[0])[7], 1 / (1 + std::exp(-3.0)), 1e-6);
  EXPECT_EQ(session.GetMemoryReport().peak_bytes, plan.peak_bytes);
}

TEST(Session, AcceptsTheMinimumLimitAndRefusesOneByteLess) {
  const std::string bytes = chain_model(5);
  const int64_t minimum = open(bytes).Prepare({{"x", {1000, 64}}}).minimum_limit_bytes;
  const std::vector<Value> input = {Value::CreateTensor(ElementType::kFloat, {1000, 64})};
  Session fits = open(bytes, SessionOptions().SetMemoryLimit(minimum));
  EXPECT_NO_THROW(fits.Run({}, {"x"}, input, {fits.GetOutputs()[0].name}));
  EXPECT_EQ(fits.GetMemoryReport().peak_bytes, minimum);
  Session refuses = open(bytes, SessionOptions().SetMemoryLimit(minimum - 1));
  EXPECT_EQ(code_of([&] { refuses.Run({}, {"x"}, input, {refuses.GetOutputs()[0].name}); }),
            ErrorCode::kBudgetExceeded);
  EXPECT_EQ(refuses.GetMemoryReport()[Account::kPlanned].peak_bytes, 0);
  // Still usable for what fits.
  EXPECT_NO_THROW(refuses.Run({}, {"x"}, {Value::CreateTensor(ElementType::kFloat, {1, 64})},
                              {refuses.GetOutputs()[0].name}));
}

// Two sessions under one line that holds either of their runs, but not both arenas at once.
TEST(Env, IdleMemoryOfOneSessionMakesRoomForAnother) {
  const std::string bytes = product_model();
  const Value input = Value::CreateTensor(ElementType::kFloat, {4000, 64});
  const auto run = [&](Session& session) { session.Run({}, {"x"}, {input}, {session.GetOutputs()[0].name}); };
  Session alone = open(bytes);
  const int64_t peak = alone.Prepare({{"x", {4000, 64}}}).peak_bytes;
  const int64_t arena = [&] {
    run(alone);
    return alone.GetMemoryReport()[Account::kPlanned].now_bytes;
  }();
  ASSERT_GT(arena, peak / 4);
  alone.ReleaseMemory();
  const int64_t closed = alone.GetMemoryReport().now_bytes;

  EnvOptions options;
  options.memory_limit_bytes = peak + closed + arena / 2;
  const Env env(options);
  Session first(env, bytes.data(), bytes.size(), SessionOptions().SetIntraOpNumThreads(1));
  Session second(env, bytes.data(), bytes.size(), SessionOptions().SetIntraOpNumThreads(1));
  for (int i = 0; i < 3; ++i) {
    EXPECT_NO_THROW(run(first));
    EXPECT_NO_THROW(run(second));
    EXPECT_EQ(first.GetMemoryReport()[Account::kPlanned].now_bytes, 0);
  }
  EXPECT_LE(env.GetMemoryReport().peak_bytes, options.memory_limit_bytes);
}

TEST(Env, IdleMemoryMakesRoomForANewSession) {
  const std::string bytes = product_model();
  Session alone = open(bytes);
  const int64_t peak = alone.Prepare({{"x", {4000, 64}}}).peak_bytes;
  EnvOptions options;
  options.memory_limit_bytes = peak;
  const Env env(options);
  Session first(env, bytes.data(), bytes.size(), SessionOptions().SetIntraOpNumThreads(1));
  first.Run({}, {"x"}, {Value::CreateTensor(ElementType::kFloat, {4000, 64})}, {first.GetOutputs()[0].name});
  // Sessions are opened until there is no room for what they are made of.
  std::vector<Session> more;
  EXPECT_EQ(code_of([&] {
              for (int i = 0; i < 1000; ++i)
                more.emplace_back(env, bytes.data(), bytes.size(), SessionOptions().SetIntraOpNumThreads(1));
            }),
            ErrorCode::kBudgetExceeded);
  EXPECT_EQ(first.GetMemoryReport()[Account::kPlanned].now_bytes, 0);
  EXPECT_LE(env.GetMemoryReport().peak_bytes, peak);
}

TEST(Session, MemoryGoesBack) {
  const std::string bytes = product_model();
  Env env;
  {
    Session session(env, bytes.data(), bytes.size());
    session.Run({}, {"x"}, {Value::CreateTensor(ElementType::kFloat, {4000, 64})},
                {session.GetOutputs()[0].name});
    EXPECT_GT(session.GetMemoryReport()[Account::kPlanned].now_bytes, 0);
    session.ReleaseMemory();
    EXPECT_EQ(session.GetMemoryReport()[Account::kPlanned].now_bytes, 0);
  }
  EXPECT_EQ(env.GetMemoryReport().now_bytes, 0);
}

TEST(Session, TwoSessionsShareOneLine) {
  const std::string bytes = product_model();
  EnvOptions options;
  options.memory_limit_bytes = 4 << 20;
  Env env(options);
  Session first(env, bytes.data(), bytes.size(), SessionOptions().SetIntraOpNumThreads(1));
  Session second(env, bytes.data(), bytes.size(), SessionOptions().SetIntraOpNumThreads(1));
  const std::vector<Value> big = {Value::CreateTensor(ElementType::kFloat, {3000, 64})};
  const std::string output = first.GetOutputs()[0].name;
  EXPECT_NO_THROW(first.Run({}, {"x"}, big, {output}));
  EXPECT_EQ(code_of([&] {
              second.Run({}, {"x"}, {Value::CreateTensor(ElementType::kFloat, {9000, 64})}, {output});
            }),
            ErrorCode::kBudgetExceeded);
  EXPECT_LE(env.GetMemoryReport().peak_bytes, options.memory_limit_bytes);
}

TEST(Session, PlanCacheIsBounded) {
  const std::string bytes = chain_model(20);
  SessionOptions options;
  options.plan_cache_bytes = 256 << 10;
  Session session = open(bytes, options);
  for (int64_t batch = 1; batch < 200; ++batch) session.Prepare({{"x", {batch, 64}}});
  EXPECT_LE(session.GetMemoryReport()[Account::kSession].now_bytes, 1 << 20);
}

// The least recently used shape goes first, not the oldest.
TEST(Session, PlanCacheKeepsWhatIsUsed) {
  const std::string bytes = chain_model(20);
  Session probe = open(bytes);
  const int64_t before = probe.GetMemoryReport()[Account::kSession].now_bytes;
  const Value input = Value::CreateTensor(ElementType::kFloat, {1, 64});
  probe.Prepare({{"x", {1, 64}}});
  SessionOptions options;
  options.plan_cache_bytes = 2 * (probe.GetMemoryReport()[Account::kSession].now_bytes - before);
  Session session = open(bytes, options);
  const double first = session.Prepare({{"x", {1, 64}}}).prepare_ms;
  session.Prepare({{"x", {2, 64}}});
  session.Run({}, {"x"}, {input}, {session.GetOutputs()[0].name});
  session.Prepare({{"x", {3, 64}}});
  EXPECT_EQ(session.Prepare({{"x", {1, 64}}}).prepare_ms, first);
}

// A limit that holds each of two shapes holds them one after the other.
TEST(Session, ShapesTakeTurnsUnderALimit) {
  for (const bool wide_first : {true, false}) {
    ModelBuilder model;
    Edge* x = model.input("x", ElementType::kFloat, {"rows", "columns"});
    Edge* e = model.node("Exp", {x})[0];
    Edge* axes = model.constant<int64_t>("axes", {1}, {1});
    model.output(model.node("ReduceSum", {model.node("Softmax", {model.node("Neg", {e})[0]})[0], axes})[0]);
    const std::string bytes = model.bytes();
    const std::vector<int64_t> wide = {3, 100'000}, small = {2, 10};
    const int64_t minimum = open(bytes).Prepare({{"x", wide}}).minimum_limit_bytes;
    Session session = open(bytes, SessionOptions().SetMemoryLimit(minimum));
    const std::string output = session.GetOutputs()[0].name;
    for (int i = 0; i < 3; ++i) {
      for (const auto& shape : {wide_first ? wide : small, wide_first ? small : wide})
        EXPECT_NO_THROW(session.Run({}, {"x"}, {Value::CreateTensor(ElementType::kFloat, shape)}, {output}));
    }
    for (int64_t rows = 1; rows < 20; ++rows) EXPECT_NO_THROW(session.Prepare({{"x", {rows, 7}}}));
    EXPECT_NO_THROW(session.Run({}, {"x"}, {Value::CreateTensor(ElementType::kFloat, wide)}, {output}));
    EXPECT_LE(session.GetMemoryReport().peak_bytes, minimum);
  }
}

TEST(Session, ARunsLimitIsCheckedBeforeMemoryIsTaken) {
  const std::string bytes = product_model();
  Session session = open(bytes);
  EXPECT_EQ(code_of([&] {
              session.Run(RunOptions().SetMemoryLimit(1), {"x"},
                          {Value::CreateTensor(ElementType::kFloat, {4000, 64})},
                          {session.GetOutputs()[0].name});
            }),
            ErrorCode::kBudgetExceeded);
  EXPECT_EQ(session.GetMemoryReport()[Account::kPlanned].peak_bytes, 0);
}

// What a run makes for the caller counts, even where only the data tells its size.
TEST(Session, OutputsWhoseSizeTheDataTellsAreCharged) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"n"});
  model.output(model.node("NonZero", {x})[0], ElementType::kInt64);
  const std::string bytes = model.bytes();
  const int64_t count = 100'000;
  const Value ones = floats({count}, std::vector<float>(static_cast<size_t>(count), 1.0f));
  Session session = open(bytes);
  const std::string name = session.GetOutputs()[0].name;
  session.Run({}, {"x"}, {ones}, {name});
  EXPECT_EQ(session.GetMemoryReport()[Account::kBound].peak_bytes, count * 4 + count * 8);
  SessionOptions options;
  options.memory_limit_bytes = session.GetMemoryReport().peak_bytes - 1;
  Session tight(Env(), bytes.data(), bytes.size(), options.SetIntraOpNumThreads(1));
  EXPECT_EQ(code_of([&] { tight.Run({}, {"x"}, {ones}, {name}); }), ErrorCode::kBudgetExceeded);
}

TEST(Env, ANegativeLimitIsAnError) {
  EnvOptions options;
  options.memory_limit_bytes = -1;
  EXPECT_EQ(code_of([&] { const Env env(options); }), ErrorCode::kInvalidArgument);
}

}  // namespace plimsoll
