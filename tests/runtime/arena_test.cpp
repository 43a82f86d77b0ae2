// What a session does not plan, taken from an arena: each setting by its bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "session_support.h"

namespace plimsoll {
namespace {

// Whose shape the data decides: the places of what is not zero, as floats, twice.
std::string nonzero_model() {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"n"});
  Attribute to;
  to.name = "to", to.type = AttributeType::kInt, to.i = 1;
  Edge* places = model.node("Cast", {model.node("NonZero", {x})[0]}, 1, {to})[0];
  model.output(model.node("Exp", {model.node("Neg", {places})[0]})[0]);
  return model.bytes();
}

ArenaCfg settings(int strategy, int64_t max_mem = 0) {
  ArenaCfg cfg;
  cfg.arena_extend_strategy = strategy;
  cfg.max_mem = max_mem;
  return cfg;
}

constexpr int kNextPowerOfTwo = 0, kSameAsRequested = 1;
constexpr int64_t kMany = 100'000;

std::vector<Value> ones(int64_t count) {
  return {floats({count}, std::vector<float>(static_cast<size_t>(count), 1))};
}

std::vector<Value> run(Session& session, int64_t count, const RunOptions& options = {}) {
  return session.Run(options, {"x"}, ones(count), {session.GetOutputs()[0].name});
}

int64_t dynamic_now(const Session& session) {
  return session.GetMemoryReport()[Account::kDynamic].now_bytes;
}

}  // namespace

TEST(SessionArena, WithoutOneNothingIsKept) {
  const std::string bytes = nonzero_model();
  Session session = open(bytes);
  run(session, kMany);
  EXPECT_EQ(dynamic_now(session), 0);
  EXPECT_EQ(session.GetArenaStats().total_allocated, 0);
}

TEST(SessionArena, KeepsWhatItHasAndTheLedgerKnows) {
  const std::string bytes = nonzero_model();
  Session plain = open(bytes), session = open(bytes, SessionOptions().SetArena(settings(kSameAsRequested)));
  const std::vector<float> expected = to_floats(run(plain, kMany)[0]);
  EXPECT_EQ(to_floats(run(session, kMany)[0]), expected);
  const ArenaStats first = session.GetArenaStats();
  EXPECT_GT(first.num_arena_extensions, 0);
  EXPECT_GE(first.max_alloc_size, kMany * 4);
  EXPECT_EQ(first.in_use, 0);  // the result went with its Value
  EXPECT_EQ(dynamic_now(session), first.total_allocated);
  EXPECT_EQ(to_floats(run(session, kMany)[0]), expected);
  EXPECT_EQ(session.GetArenaStats().num_arena_extensions, first.num_arena_extensions);  // used again
  session.ReleaseMemory();
  EXPECT_EQ(dynamic_now(session), 0);
}

TEST(SessionArena, OutputsThatNobodyBoundComeFromItAndMayOutliveTheSession) {
  const std::string bytes = chain_model(2);
  Env env;
  std::vector<Value> outputs;
  {
    Session session(env, bytes.data(), bytes.size(),
                    SessionOptions().SetIntraOpNumThreads(1).SetArena(settings(kSameAsRequested)));
    outputs = session.Run({}, {"x"}, {floats({100, 64}, std::vector<float>(6400, 0))},
                          {session.GetOutputs()[0].name});
    EXPECT_GE(session.GetArenaStats().in_use, 6400 * 4);
    EXPECT_EQ(session.GetMemoryReport()[Account::kBound].now_bytes, 0);
    EXPECT_EQ(session.GetMemoryReport()[Account::kBound].peak_bytes, 6400 * 4);  // the input alone
  }
  EXPECT_FLOAT_EQ(to_floats(outputs[0])[6399], 0.5f);
  EXPECT_GE(env.GetMemoryReport().now_bytes, 6400 * 4);
  outputs.clear();
  EXPECT_EQ(env.GetMemoryReport().now_bytes, 0);
}

TEST(SessionArena, DoublingTakesMoreThanAsRequested) {
  const std::string bytes = nonzero_model();
  const auto held = [&](const ArenaCfg& cfg) {
    Session session = open(bytes, SessionOptions().SetArena(cfg));
    run(session, kMany);
    return session.GetArenaStats().total_allocated;
  };
  EXPECT_GT(held(settings(kNextPowerOfTwo)), held(settings(kSameAsRequested)));
}

TEST(SessionArena, MaxMemRefusesAndTheSessionGoesOn) {
  const std::string bytes = nonzero_model();
  Session session = open(bytes, SessionOptions().SetArena(settings(kSameAsRequested, 512 << 10)));
  try {
    run(session, kMany);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBudgetExceeded);
    EXPECT_THAT(error.what(), testing::HasSubstr("max_mem"));
  }
  EXPECT_EQ(session.GetArenaStats().in_use, 0);
  EXPECT_EQ(run(session, 100)[0].GetElementCount(), 100u);
}

TEST(SessionArena, ShrinksAfterARunWhereAsked) {
  const std::string bytes = nonzero_model();
  Session session = open(bytes, SessionOptions().SetArena(settings(kSameAsRequested)));
  run(session, kMany);
  const int64_t kept = dynamic_now(session);
  run(session, kMany, RunOptions().AddConfigEntry("memory.enable_memory_arena_shrinkage", "cpu:0"));
  // The result, which is in use while the run ends, keeps its region.
  EXPECT_LT(dynamic_now(session), kept);
  EXPECT_GT(dynamic_now(session), 0);
  EXPECT_EQ(session.GetArenaStats().num_arena_shrinkages, 1);
  EXPECT_EQ(session.GetMemoryReport()[Account::kPlanned].now_bytes, 0);
}

TEST(SessionArena, ARunsOwnLimitCountsWhatItHasOfTheArena) {
  const std::string bytes = nonzero_model();
  Session session = open(bytes, SessionOptions().SetArena(settings(kSameAsRequested)));
  run(session, kMany);
  EXPECT_EQ(code_of([&] { run(session, kMany, RunOptions().SetMemoryLimit(1'000'000)); }),
            ErrorCode::kBudgetExceeded);
  run(session, kMany, RunOptions().SetMemoryLimit(8'000'000));
}

TEST(SessionArena, TheSessionsLimitHolds) {
  const std::string bytes = nonzero_model();
  Session probe = open(bytes);
  probe.Prepare({{"x", {kMany}}});
  const int64_t fixed = probe.GetMemoryReport().peak_bytes;
  Session session =
      open(bytes, SessionOptions().SetArena(settings(kNextPowerOfTwo)).SetMemoryLimit(fixed + kMany * 40));
  run(session, kMany);
  EXPECT_LE(session.GetMemoryReport().peak_bytes, fixed + kMany * 40);
}

TEST(SharedArena, ServesTheSessionsThatAskForIt) {
  const std::string bytes = nonzero_model();
  Env env;
  const MemoryInfo cpu("Cpu", AllocatorType::kArena);
  env.CreateAndRegisterAllocator(cpu, settings(kSameAsRequested));
  EXPECT_EQ(code_of([&] { env.CreateAndRegisterAllocator(cpu, {}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { env.CreateAndRegisterAllocator(MemoryInfo("Cuda", AllocatorType::kArena), {}); }),
            ErrorCode::kInvalidArgument);
  const SessionOptions options =
      SessionOptions().SetIntraOpNumThreads(1).AddConfigEntry("session.use_env_allocators", "1");
  Session first(env, bytes.data(), bytes.size(), options), second(env, bytes.data(), bytes.size(), options);
  Session own(env, bytes.data(), bytes.size(), SessionOptions().SetIntraOpNumThreads(1));
  run(first, kMany);
  const ArenaStats after_first = first.GetArenaStats();
  run(second, kMany);
  EXPECT_EQ(second.GetArenaStats().num_arena_extensions,
            after_first.num_arena_extensions);  // what the other left
  EXPECT_EQ(own.GetArenaStats().num_allocs, 0);
  EXPECT_EQ(dynamic_now(first), 0);  // the regions are the Env's
  EXPECT_EQ(env.GetMemoryReport()[Account::kDynamic].now_bytes, after_first.total_allocated);
  EXPECT_EQ(env.GetSharedAllocator(cpu)->GetStats().num_arena_extensions, after_first.num_arena_extensions);
  env.UnregisterAllocator(cpu);
  EXPECT_FALSE(env.GetSharedAllocator(cpu));
  run(first, kMany);  // it has it still
}

// What it has idle is given up before another session is refused.
TEST(SharedArena, MakesRoomForOthers) {
  const std::string bytes = nonzero_model(), chain = chain_model(1);
  EnvOptions limit;
  limit.memory_limit_bytes = 4'000'000;
  Env env(limit);
  const MemoryInfo cpu("Cpu", AllocatorType::kArena);
  env.CreateAndRegisterAllocator(cpu, settings(kSameAsRequested));
  Session first(env, bytes.data(), bytes.size(),
                SessionOptions().SetIntraOpNumThreads(1).AddConfigEntry("session.use_env_allocators", "1"));
  run(first, kMany);
  const int64_t idle = env.GetSharedAllocator(cpu)->GetStats().total_allocated;
  EXPECT_GT(idle, 1'000'000);
  Session other(env, chain.data(), chain.size(), SessionOptions().SetIntraOpNumThreads(1));
  const int64_t rows = 5500;  // in and out: 2.8 MB
  other.Run({}, {"x"}, {floats({rows, 64}, std::vector<float>(64 * rows, 0))}, other.GetOutputNames());
  EXPECT_EQ(env.GetSharedAllocator(cpu)->GetStats().total_allocated, 0);
  EXPECT_LE(env.GetMemoryReport().peak_bytes, limit.memory_limit_bytes);
}

TEST(SharedArena, ThreadsShareIt) {
  const std::string bytes = nonzero_model();
  Env env;
  env.CreateAndRegisterAllocator(MemoryInfo("Cpu", AllocatorType::kArena), settings(kNextPowerOfTwo));
  const SessionOptions options =
      SessionOptions().SetIntraOpNumThreads(1).AddConfigEntry("session.use_env_allocators", "1");
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Session session(env, bytes.data(), bytes.size(), options);
      for (int i = 0; i < 20; ++i) {
        const std::vector<Value> made = run(session, 1000 + 700 * t + i);
        wrong += std::abs(to_floats(made[0])[1] - std::exp(-1.0f)) > 1e-5f ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(env.GetSharedAllocator(MemoryInfo("Cpu", AllocatorType::kArena))->GetStats().in_use, 0);
}

TEST(Allocator, StagesTensorsInTheSessionsArena) {
  const std::string bytes = chain_model(1);
  Session session = open(bytes, SessionOptions().SetArena(settings(kSameAsRequested)));
  const Allocator allocator(session, MemoryInfo("Cpu", AllocatorType::kArena));
  {
    const Value staged = Value::CreateTensor(allocator, ElementType::kFloat, {100, 64});
    EXPECT_GE(allocator.GetStats().in_use, 6400 * 4);
    EXPECT_EQ(staged.GetElementCount(), 6400u);
  }
  EXPECT_EQ(allocator.GetStats().in_use, 0);
  EXPECT_EQ(allocator.GetStats().ToMap().at("NumAllocs"), 1);
  const Allocator heap;
  heap.Free(heap.Alloc(100));
  EXPECT_EQ(heap.GetStats().num_allocs, 0);
}

}  // namespace plimsoll
