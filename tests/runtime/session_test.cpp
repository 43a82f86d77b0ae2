#include "plimsoll/session.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/model_builder.h"

namespace plimsoll {
namespace {

Value floats(const std::vector<int64_t>& shape, const std::vector<float>& values) {
  Value value = Value::CreateTensor(ElementType::kFloat, shape);
  std::copy(values.begin(), values.end(), value.GetTensorMutableData<float>());
  return value;
}

std::vector<float> to_floats(const Value& value) {
  const auto* data = value.GetTensorData<float>();
  return {data, data + value.GetElementCount()};
}

// y = relu(x + x) * x, chained `depth` times, with a symbolic batch.
std::string chain_model(int depth) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"batch", "64"});
  Edge* value = x;
  for (int i = 0; i < depth; ++i) {
    Edge* sum = model.node("Add", {value, x})[0];
    value = model.node("Relu", {sum})[0];
  }
  Edge* y = model.node("Sigmoid", {value})[0];
  model.output(y);
  return model.bytes();
}

// y = relu(x) * w: what relu makes cannot be overwritten by the product.
std::string product_model() {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"batch", "64"});
  Edge* w = model.constant<float>("w", {64, 64}, std::vector<float>(64 * 64, 0.5f));
  model.output(model.node("MatMul", {model.node("Exp", {x})[0], w})[0]);
  return model.bytes();
}

Session open(const std::string& bytes, SessionOptions options = {}) {
  return Session(Env(), bytes.data(), bytes.size(), options.SetIntraOpNumThreads(1));
}

ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "expected an Error";
  return ErrorCode::kIo;
}

}  // namespace

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

// The model loads, and some shapes do fit it: the caller is told that these do not.
TEST(Session, ShapesThatDoNotFitEachOtherAreTheCallersMistake) {
  ModelBuilder model;
  Edge* a = model.input("a", ElementType::kFloat, {"rows", "inner"});
  Edge* b = model.input("b", ElementType::kFloat, {"other", "columns"});
  model.output(model.node("MatMul", {a, b})[0]);
  const std::string bytes = model.bytes();
  Session session = open(bytes);
  EXPECT_NO_THROW(session.Prepare({{"a", {2, 3}}, {"b", {3, 4}}}));
  try {
    session.Prepare({{"a", {2, 3}}, {"b", {5, 4}}});
    ADD_FAILURE() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    EXPECT_NE(std::string(error.what()).find("'b' [5, 4]"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("MatMul"), std::string::npos) << error.what();
  }
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

// Kernels read whole elements: weights that lie askew in the caller's bytes are copied, and the copy is
// charged.
TEST(Session, WeightsOfAModelInMemoryAreAligned) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"2"});
  model.output(model.node("PRelu", {x, model.constant<float>("slope", {1}, {0.25f})})[0]);
  const std::string bytes = model.bytes();
  int copied = 0;
  for (size_t shift = 0; shift < alignof(float); ++shift) {
    const std::string shifted = std::string(shift, ' ') + bytes;
    Session session(Env(), shifted.data() + shift, bytes.size(), SessionOptions().SetIntraOpNumThreads(1));
    if (session.GetMemoryReport()[Account::kWeights].now_bytes > 0) ++copied;
    const auto result = session.Run({}, {"x"}, {floats({2}, {-2, 2})}, {session.GetOutputs()[0].name});
    EXPECT_EQ(to_floats(result[0]), (std::vector<float>{-0.5f, 2}));
  }
  EXPECT_EQ(copied, 3);
}

TEST(Session, RejectsWrongInputs) {
  const std::string bytes = chain_model(1);
  Session session = open(bytes);
  const std::string output = session.GetOutputs()[0].name;
  const Value good = Value::CreateTensor(ElementType::kFloat, {1, 64});
  EXPECT_EQ(code_of([&] { session.Run({}, {}, {}, {output}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { session.Run({}, {"z"}, {good}, {output}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { session.Run({}, {"x"}, {good}, {"z"}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] {
              session.Run({}, {"x"}, {Value::CreateTensor(ElementType::kInt64, {1, 64})}, {output});
            }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] {
              session.Run({}, {"x"}, {Value::CreateTensor(ElementType::kFloat, {1, 65})}, {output});
            }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      code_of([&] { session.Run({}, {"x"}, {Value::CreateTensor(ElementType::kFloat, {64})}, {output}); }),
      ErrorCode::kInvalidArgument);
  EXPECT_NO_THROW(session.Run({}, {"x"}, {good}, {output}));
}

TEST(Session, CancelsAndKeepsDeadlines) {
  const std::string bytes = chain_model(3);
  Session session = open(bytes);
  const std::vector<Value> input = {Value::CreateTensor(ElementType::kFloat, {1, 64})};
  const std::string output = session.GetOutputs()[0].name;
  RunOptions cancelled;
  cancelled.SetTerminate();
  EXPECT_EQ(code_of([&] { session.Run(cancelled, {"x"}, input, {output}); }), ErrorCode::kCancelled);
  RunOptions late;
  late.SetDeadline(std::chrono::steady_clock::now() - std::chrono::seconds(1));
  EXPECT_EQ(code_of([&] { session.Run(late, {"x"}, input, {output}); }), ErrorCode::kDeadlineExceeded);
  EXPECT_NO_THROW(session.Run({}, {"x"}, input, {output}));
}

TEST(Session, ManyThreadsShareIt) {
  const std::string bytes = chain_model(10);
  Session session = open(bytes, SessionOptions().SetMaxConcurrentRuns(3));
  const std::string output = session.GetOutputs()[0].name;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const int64_t batch = 1 + (t + i) % 4;
        const float x = 0.01f * static_cast<float>(t);
        const Value input = floats({batch, 64}, std::vector<float>(static_cast<size_t>(batch) * 64, x));
        const auto result = session.Run({}, {"x"}, {input}, {output});
        const double expected = 1 / (1 + std::exp(-11.0 * static_cast<double>(x)));
        for (float y : to_floats(result[0])) wrong += std::abs(static_cast<double>(y) - expected) > 1e-5;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Session, SaysBusyWhenAsked) {
  const std::string bytes = chain_model(20);
  SessionOptions options;
  options.when_busy = BusyPolicy::kError;
  Session session = open(bytes, options);
  const std::string output = session.GetOutputs()[0].name;
  // True if the run was refused because another one held the only slot.
  auto refused = [&](int64_t batch) {
    try {
      session.Run({}, {"x"}, {Value::CreateTensor(ElementType::kFloat, {batch, 64})}, {output});
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBusy);
      return true;
    }
  };
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) refused(2000);
  });
  bool seen = false;
  for (int i = 0; i < 1000000 && !seen; ++i) seen = refused(1);
  stop = true;
  other.join();
  EXPECT_TRUE(seen);
  EXPECT_FALSE(refused(1));
}

TEST(Session, BindingRunsIntoTheCallersMemory) {
  const std::string bytes = chain_model(2);
  Session session = open(bytes);
  std::vector<float> in(128, 1.0f), out(128, 0.0f);
  IoBinding binding(session);
  binding.BindInput("x", Value::CreateTensor(in.data(), in.size(), {2, 64}));
  binding.BindOutput(session.GetOutputs()[0].name, Value::CreateTensor(out.data(), out.size(), {2, 64}));
  session.Run({}, binding);
  EXPECT_NEAR(out[100], 1 / (1 + std::exp(-3.0)), 1e-6);
  binding.BindOutput(session.GetOutputs()[0].name, Value::CreateTensor(out.data(), out.size(), {1, 128}));
  EXPECT_EQ(code_of([&] { session.Run({}, binding); }), ErrorCode::kInvalidArgument);
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

TEST(Session, ProfileCountsConcurrentRuns) {
  const std::string bytes = chain_model(50);
  Session session = open(bytes, SessionOptions().SetMaxConcurrentRuns(4));
  const std::string output = session.GetOutputs()[0].name;
  session.EnableProfiling(true);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i)
        session.Run({}, {"x"}, {Value::CreateTensor(ElementType::kFloat, {1, 64})}, {output});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Session::ProfileEntry& entry : session.GetProfile()) EXPECT_EQ(entry.count, 2000) << entry.node;
}

TEST(Session, RefusesTheBindingOfAnother) {
  const std::string bytes = chain_model(1);
  ModelBuilder none;
  none.output(none.constant<float>("c", {1}, {1}));
  const std::string empty = none.bytes();
  Session session = open(bytes), other = open(empty);
  IoBinding binding(other);
  EXPECT_EQ(code_of([&] { session.Run({}, binding); }), ErrorCode::kInvalidArgument);
  IoBinding own(session);
  own.BindInput("x", Value::CreateTensor(ElementType::kFloat, {1, 64}));
  own.BindOutput(session.GetOutputs()[0].name);
  Session moved = std::move(session);
  EXPECT_NO_THROW(moved.Run({}, own));
}

// A run that is cancelled or late while it waits for its turn ends at once.
TEST(Session, StopsWhileWaiting) {
  ModelBuilder model;
  Edge* count = model.input("count", ElementType::kInt64, {});
  Edge* x = model.input("x", ElementType::kFloat, {"n"});
  Graph* body = model.new_body();
  model.body_input(*body, "i", ElementType::kInt64, {});
  Edge* go_on = model.body_input(*body, "cond", ElementType::kBool, {});
  Edge* state = model.body_input(*body, "state", ElementType::kFloat, {"n"});
  body->outputs.push_back(go_on);
  body->outputs.push_back(model.node_in(*body, "Neg", {state})[0]);
  model.output(model.node("Loop", {count, nullptr, x}, 1, {ModelBuilder::body("body", body)})[0]);
  const std::string bytes = model.bytes();
  Session session = open(bytes);
  const std::string output = session.GetOutputs()[0].name;
  Value forever = Value::CreateTensor(ElementType::kInt64, {});
  *forever.GetTensorMutableData<int64_t>() = int64_t{1} << 60;
  const std::vector<Value> inputs = {forever, floats({1}, {1})};
  RunOptions first;
  std::thread runner([&] { code_of([&] { session.Run(first, {"count", "x"}, inputs, {output}); }); });
  std::thread rescue([&] {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    first.SetTerminate();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto start = std::chrono::steady_clock::now();
  RunOptions late;
  late.SetDeadline(start + std::chrono::milliseconds(20));
  EXPECT_EQ(code_of([&] {
              session.Run(late, {"count", "x"}, inputs, {output});
            }),
            ErrorCode::kDeadlineExceeded);
  RunOptions cancelled;
  cancelled.SetTerminate();
  EXPECT_EQ(code_of([&] {
              session.Run(cancelled, {"count", "x"}, inputs, {output});
            }),
            ErrorCode::kCancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(1500));
  first.SetTerminate();
  runner.join();
  rescue.join();
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

// Sizes that no memory holds are an Error of the shape, not a wrong figure.
TEST(Session, RejectsShapesThatOverflow) {
  const std::string bytes = product_model();
  Session session = open(bytes, SessionOptions().SetMaxConcurrentRuns(1024));
  EXPECT_THROW(session.Prepare({{"x", {int64_t{1} << 50, 64}}}), Error);
  ModelBuilder model;
  model.output(model.node("Neg", {model.input("x", ElementType::kFloat, {"a", "b", "c"})})[0]);
  const std::string cube = model.bytes();
  Session other = open(cube);
  EXPECT_EQ(code_of([&] {
              other.Prepare({{"x", {0, int64_t{1} << 40, int64_t{1} << 40}}});
            }),
            ErrorCode::kInvalidArgument);
}

// Many inputs: none of them may be taken for another node's packed weight.
TEST(Session, ANodeMayHaveHundredsOfInputs) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"batch", "4"});
  Edge* w = model.constant<float>("w", {4, 4}, std::vector<float>(16, 1.0f));
  Edge* w2 = model.constant<float>("w2", {1200, 4}, std::vector<float>(4800, 1.0f));
  Edge* product = model.node("MatMul", {model.node("Neg", {x})[0], w})[0];
  Edge* wide =
      model.node("Concat", std::vector<Edge*>(300, product), 1, {ModelBuilder::integer("axis", 1)})[0];
  model.output(model.node("MatMul", {wide, w2})[0]);
  const std::string bytes = model.bytes();
  Session session =
      open(bytes, SessionOptions().SetGraphOptimizationLevel(GraphOptimizationLevel::kDisableAll));
  const auto y = session.Run({}, {"x"}, {floats({1, 4}, {1, 1, 1, 1})}, {session.GetOutputs()[0].name});
  EXPECT_EQ(to_floats(y[0])[0], -4800.0f);
}

// X has no rank, so that only the constants can be looked at before a run.
TEST(Lstm, WeightsOfAWrongRankAreAnError) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {});
  x->facts.type.ranked = false;
  Edge* w = model.constant<float>("w", {8}, std::vector<float>(8, 1.0f));
  Edge* r = model.constant<float>("r", {}, {1.0f});
  model.output(model.node("LSTM", {x, w, r}, 1, {ModelBuilder::integer("hidden_size", 2)})[0]);
  const std::string bytes = model.bytes();
  EXPECT_EQ(code_of([&] { open(bytes).Prepare({{"x", {3, 1, 2}}}); }), ErrorCode::kInvalidModel);
}

TEST(Env, ANegativeLimitIsAnError) {
  EnvOptions options;
  options.memory_limit_bytes = -1;
  EXPECT_EQ(code_of([&] { const Env env(options); }), ErrorCode::kInvalidArgument);
}

// A file may name our own fused forms, and leave the rank of X open: what packing reads is checked anyway.
TEST(FusedConv, WeightsAreCheckedBeforeTheyArePacked) {
  struct Case {
    std::vector<int64_t> weights, scale, bias;
    int64_t group;
    bool fits;
  };
  const Case cases[] = {
      {{64, 4, 1, 1}, {64}, {64}, 1, true},    {{64, 4, 1, 1}, {1}, {64}, 1, false},
      {{64, 4, 1, 1}, {64}, {1}, 1, false},    {{64, 4, 1, 1}, {8, 8}, {64}, 1, false},
      {{64, 4}, {64}, {64}, 1, false},         {{64}, {64}, {64}, 1, false},
      {{64, 4, 1, 1}, {64}, {64}, 63, false},  {{64, 4, 0, 1}, {64}, {64}, 1, false},
      {{64, 4, 1, 1}, {64}, {8, 8}, 1, false},
  };
  for (const Case& c : cases) {
    const auto filled_with_ones = [](const std::vector<int64_t>& dims) {
      size_t count = 1;
      for (int64_t d : dims) count *= static_cast<size_t>(d);
      return std::vector<float>(count, 1.0f);
    };
    ModelBuilder model;
    Edge* x = model.input("x", ElementType::kFloat, {});
    x->facts.type.ranked = false;
    Edge* inputs[] = {x, model.constant<float>("w", c.weights, filled_with_ones(c.weights)),
                      model.constant<float>("b", c.bias, filled_with_ones(c.bias)), nullptr,
                      model.constant<float>("s", c.scale, filled_with_ones(c.scale))};
    Edge* outputs[] = {model.graph().add_edge("y")};
    const Attribute attributes[] = {ModelBuilder::integer("group", c.group)};
    model.graph().add_node("ai.plimsoll", "FusedConv", "fused", inputs, outputs, attributes);
    model.output(outputs[0]);
    const std::string bytes = model.bytes();
    auto load_and_run = [&] {
      open(bytes).Run({}, {"x"}, {Value::CreateTensor(ElementType::kFloat, {1, 4, 2, 2})}, {"y"});
    };
    const std::string label = to_string(c.weights) + to_string(c.scale) + to_string(c.bias);
    if (c.fits) {
      EXPECT_NO_THROW(load_and_run()) << label;
    } else {
      EXPECT_EQ(code_of([&] { open(bytes); }), ErrorCode::kInvalidModel) << label;
    }
  }
}

TEST(ScaleShift, OperandsOfOtherShapesAreErrors) {
  struct Case {
    std::vector<int64_t> scale, shift, addend;
    bool fits;
  };
  const std::vector<int64_t> x = {1, 64, 2, 2};
  const Case cases[] = {{{64}, {1}, x, true},      {{1}, {64}, x, true},
                        {{2}, {64}, x, false},     {{64}, {0}, x, false},
                        {{8, 8}, {64}, x, false},  {{64}, {64}, {1, 64, 1, 1}, false},
                        {{64}, {64}, {256}, false}};
  for (const Case& c : cases) {
    ModelBuilder model;
    std::vector<Edge*> inputs;
    for (const char* name : {"x", "scale", "shift", "addend"}) {
      inputs.push_back(model.input(name, ElementType::kFloat, {}));
      inputs.back()->facts.type.ranked = false;
    }
    Edge* outputs[] = {model.graph().add_edge("y")};
    model.graph().add_node("ai.plimsoll", "ScaleShift", "fused", inputs, outputs);
    model.output(outputs[0]);
    const std::string bytes = model.bytes();
    auto load_and_run = [&] {
      std::vector<Value> values;
      for (const auto* dims : {&x, &c.scale, &c.shift, &c.addend})
        values.push_back(Value::CreateTensor(ElementType::kFloat, *dims));
      open(bytes).Run({}, {"x", "scale", "shift", "addend"}, values, {"y"});
    };
    const std::string label = to_string(c.scale) + to_string(c.shift) + to_string(c.addend);
    if (c.fits) {
      EXPECT_NO_THROW(load_and_run()) << label;
    } else {
      EXPECT_EQ(code_of(load_and_run), ErrorCode::kInvalidArgument) << label;
    }
  }
}

TEST(ConvTranspose, WeightsAreCheckedBeforeTheyArePacked) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{4, 8}, {4}, {4, 8, 0, 2}, {3, 8, 2, 2}}) {
    ModelBuilder model;
    Edge* x = model.input("x", ElementType::kFloat, {});
    x->facts.type.ranked = false;
    size_t count = 1;
    for (int64_t d : dims) count *= static_cast<size_t>(d);
    Edge* w = model.constant<float>("w", dims, std::vector<float>(count, 1.0f));
    model.output(model.node("ConvTranspose", {x, w}, 1, {ModelBuilder::integer("group", 2)})[0]);
    const std::string bytes = model.bytes();
    EXPECT_EQ(code_of([&] { open(bytes); }), ErrorCode::kInvalidModel) << to_string(dims);
  }
}

// A file may name our own fused forms: what the passes guarantee has to be checked there.
TEST(FusedMatMul, BiasAndAddendOfOtherShapesAreErrors) {
  const std::vector<int64_t> small = {1}, matrix = {2, 4096}, vector = {4096};
  for (const bool is_bias : {true, false}) {
    for (const bool fits : {true, false}) {
      ModelBuilder model;
      Edge* a = model.input("a", ElementType::kFloat, {"2", "8"});
      Edge* b = model.input("b", ElementType::kFloat, {"8", "4096"});
      const std::vector<int64_t>& dims = !fits ? small : is_bias ? vector : matrix;
      Edge* more = model.input("more", ElementType::kFloat, {});
      more->facts.type.ranked = false;
      Edge* y = model.graph().add_edge("y");
      Edge* inputs[] = {a, b, is_bias ? more : nullptr, is_bias ? nullptr : more};
      Edge* outputs[] = {y};
      model.graph().add_node("ai.plimsoll", "FusedMatMul", "fused", inputs, outputs);
      model.output(y);
      const std::string bytes = model.bytes();
      Session session = open(bytes);
      auto run = [&] {
        session.Run({}, {"a", "b", "more"},
                    {Value::CreateTensor(ElementType::kFloat, {2, 8}),
                     Value::CreateTensor(ElementType::kFloat, {8, 4096}),
                     Value::CreateTensor(ElementType::kFloat, dims)},
                    {"y"});
      };
      if (fits) {
        EXPECT_NO_THROW(run());
      } else {
        EXPECT_THROW(run(), Error);
      }
    }
  }
}

}  // namespace plimsoll
