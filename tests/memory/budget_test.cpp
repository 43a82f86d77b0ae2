#include "memory/budget.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "memory/bump_arena.h"
#include "plimsoll/error.h"

namespace plimsoll {

TEST(Budget, AChargeIsTakenFromEveryLevelOrFromNone) {
  Budget process("process", 100);
  Budget session("session", 80, &process);
  Budget run("run", 50, &session);
  run.charge(Account::kPlanned, 40);
  EXPECT_EQ(process.report().now_bytes, 40);
  EXPECT_THROW(run.charge(Account::kPlanned, 11), Error);
  session.charge(Account::kPacked, 40);
  EXPECT_THROW(session.charge(Account::kPacked, 1), Error);
  EXPECT_THROW(run.charge(Account::kPlanned, 1), Error);
  EXPECT_EQ(run.report().now_bytes, 40);
  EXPECT_EQ(session.report().now_bytes, 80);
  EXPECT_EQ(process.report().now_bytes, 80);
  EXPECT_EQ(run.available(), 0);
  run.release(Account::kPlanned, 40);
  EXPECT_EQ(process.report()[Account::kPlanned].now_bytes, 0);
  EXPECT_EQ(process.report()[Account::kPlanned].peak_bytes, 40);
  EXPECT_EQ(process.report().peak_bytes, 80);
}

TEST(Budget, SiblingsShareTheLineAboveThem) {
  Budget process("process", 100);
  Budget first("first", 0, &process), second("second", 0, &process);
  first.charge(Account::kWeights, 70);
  EXPECT_EQ(second.available(), 30);
  EXPECT_THROW(second.charge(Account::kWeights, 31), Error);
  EXPECT_NO_THROW(second.charge(Account::kWeights, 30));
}

TEST(Budget, ManyThreadsNeverCrossTheLine) {
  Budget budget("shared", 1000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        try {
          const Charge charge(budget, Account::kDynamic, 1 + i % 400);
        } catch (const Error&) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.report().now_bytes, 0);
  EXPECT_LE(budget.report().peak_bytes, 1000);
}

TEST(Charge, MovesAndReleasesOnce) {
  Budget budget("test", 0);
  {
    Charge first(budget, Account::kScratch, 10);
    Charge second(std::move(first));
    second.grow(5);
    EXPECT_EQ(budget.report().now_bytes, 15);
  }
  EXPECT_EQ(budget.report().now_bytes, 0);
}

TEST(BumpArena, ChargesWhatItMaps) {
  Budget budget("test", 0);
  {
    BumpArena arena(budget);
    for (int i = 0; i < 1000; ++i) arena.allocate(100);
    arena.allocate(1 << 20, 64);
    EXPECT_EQ(budget.report()[Account::kSession].now_bytes, arena.mapped_bytes());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.allocate(1, 64)) % 64, 0u);
  }
  EXPECT_EQ(budget.report().now_bytes, 0);
}

TEST(BumpArena, GivesBackWhatIsLarge) {
  Budget budget("test", 0);
  BumpArena arena(budget);
  std::byte* small = static_cast<std::byte*>(arena.allocate(100));
  const int64_t before = arena.mapped_bytes();
  void* large = arena.allocate(300 << 10, 64);
  EXPECT_EQ(arena.bytes_to_release(large), 300 << 10);
  EXPECT_EQ(arena.bytes_to_release(small), 0);
  // Small things go on where they were.
  EXPECT_EQ(static_cast<std::byte*>(arena.allocate(100)) - small, 112);
  arena.release(small);
  arena.release(large);
  EXPECT_EQ(arena.mapped_bytes(), before);
  EXPECT_EQ(budget.report().now_bytes, before);
}

TEST(BumpArena, RefusesBeforeItMaps) {
  Budget budget("test", 64 << 10);
  BumpArena arena(budget);
  EXPECT_THROW(arena.allocate(1 << 20), Error);
  EXPECT_NO_THROW(arena.allocate(1000));
}

}  // namespace plimsoll
