#include "memory/block_arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "plimsoll/error.h"

namespace plimsoll {
namespace {

ArenaSettings with(int64_t max_mem, int strategy, int64_t first = -1, int64_t dead = -1) {
  ArenaCfg cfg;
  cfg.max_mem = max_mem;
  cfg.arena_extend_strategy = strategy;
  cfg.initial_chunk_size_bytes = first;
  cfg.max_dead_bytes_per_chunk = dead;
  return ArenaSettings(cfg);
}

constexpr int kNextPowerOfTwo = 0, kSameAsRequested = 1;

}  // namespace

TEST(BlockArena, RegionsDoubleOrAreAsRequested) {
  Budget budget("test", 0);
  BlockArena doubling(with(0, kNextPowerOfTwo, 1 << 16), budget, Account::kDynamic);
  BlockArena exact(with(0, kSameAsRequested), budget, Account::kDynamic);
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 4; ++i) {
    blocks.push_back(doubling.allocate(60'000));
    blocks.push_back(exact.allocate(60'000));
  }
  EXPECT_EQ(doubling.stats().total_allocated, (1 << 16) + (1 << 17) + (1 << 18));
  EXPECT_EQ(doubling.stats().num_arena_extensions, 3);
  EXPECT_EQ(exact.stats().total_allocated, 4 * 61'440);
  EXPECT_EQ(exact.stats().num_arena_extensions, 4);
  EXPECT_EQ(exact.stats().num_allocs, 4);
  EXPECT_EQ(budget.report().now_bytes, doubling.stats().total_allocated + exact.stats().total_allocated);
  for (size_t i = 0; i < blocks.size(); ++i) (i % 2 == 0 ? doubling : exact).free(blocks[i]);
  EXPECT_EQ(doubling.stats().in_use, 0);
  doubling.shrink();
  EXPECT_EQ(doubling.stats().total_allocated, 1 << 16);  // the first region stays
  exact.shrink();
  EXPECT_EQ(exact.stats().total_allocated, 0);
  EXPECT_EQ(exact.stats().num_arena_shrinkages, 1);
  doubling.shrink(true);
  EXPECT_EQ(budget.report().now_bytes, 0);
}

TEST(BlockArena, MaxMemRefusesAndNothingIsLost) {
  Budget budget("test", 0);
  BlockArena arena(with(256 << 10, kNextPowerOfTwo, 200 << 10), budget, Account::kDynamic);
  std::byte* first = arena.allocate(150 << 10);
  try {
    arena.allocate(100 << 10);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBudgetExceeded);
    EXPECT_NE(std::string(error.what()).find("max_mem of 262144"), std::string::npos) << error.what();
  }
  EXPECT_EQ(arena.stats().total_allocated, 200 << 10);
  arena.free(arena.allocate(40 << 10));  // there is room for that
  arena.free(first);
  EXPECT_EQ(arena.stats().in_use, 0);
  EXPECT_EQ(arena.stats().limit, 256 << 10);
}

// Under a line there is no room for what doubling asks for: just what is needed is taken.
TEST(BlockArena, LinesAreHeldWithoutGivingUpGrowth) {
  Budget budget("test", 64 << 10);
  BlockArena arena(with(0, kNextPowerOfTwo, 1 << 20), budget, Account::kDynamic);
  std::byte* block = arena.allocate(30'000);
  EXPECT_EQ(arena.stats().total_allocated, 32'768);
  EXPECT_THROW(arena.allocate(60'000), Error);
  EXPECT_EQ(budget.report().now_bytes, 32'768);
  arena.free(block);
}

// Less than half of a block would be lost: whether that is too much, max_dead_bytes_per_chunk says.
TEST(BlockArena, RestsAreSplitOffWhenTheyAreLarge) {
  const auto in_use = [](int64_t most_dead) {
    Budget budget("test", 0);
    BlockArena arena(with(0, kNextPowerOfTwo, 1 << 20, most_dead), budget, Account::kDynamic);
    std::byte* block = arena.allocate(600'000);
    const int64_t bytes = arena.stats().in_use;
    arena.free(block);
    return bytes;
  };
  EXPECT_GT(in_use(-1), 1'000'000);
  EXPECT_LT(in_use(4096), 601'000);
}

// Blocks keep their bytes, are aligned, and merge again when everything is free.
TEST(BlockArena, RandomBlocksDoNotOverlap) {
  Budget budget("test", 0);
  BlockArena arena(with(0, kNextPowerOfTwo, 1 << 16), budget, Account::kDynamic);
  std::mt19937 random(7);
  struct Taken {
    std::byte* data;
    size_t bytes;
    unsigned char fill;
  };
  std::vector<Taken> taken;
  for (int i = 0; i < 4000; ++i) {
    if (taken.empty() || random() % 5 < 3) {
      const size_t bytes = random() % (random() % 8 == 0 ? 200'000 : 3'000);
      Taken block{arena.allocate(static_cast<int64_t>(bytes)), bytes, static_cast<unsigned char>(random())};
      ASSERT_EQ(reinterpret_cast<uintptr_t>(block.data) % 64, 0u);
      if (bytes > 0) std::memset(block.data, block.fill, bytes);
      taken.push_back(block);
    } else {
      const size_t at = random() % taken.size();
      for (size_t b = 0; b < taken[at].bytes; ++b)
        ASSERT_EQ(static_cast<unsigned char>(taken[at].data[b]), taken[at].fill);
      arena.free(taken[at].data);
      taken[at] = taken.back();
      taken.pop_back();
    }
  }
  for (const Taken& block : taken) arena.free(block.data);
  EXPECT_EQ(arena.stats().in_use, 0);
  arena.shrink(true);
  EXPECT_EQ(arena.stats().total_allocated, 0);
  EXPECT_EQ(budget.report().now_bytes, 0);
}

TEST(BlockArena, SettingsAreChecked) {
  EXPECT_THROW(with(-5, 0), Error);
  EXPECT_THROW(with(0, 2), Error);
  EXPECT_THROW(with(0, 0, -7), Error);
}

}  // namespace plimsoll
