#include "observe/thread_stacks.h"

#include <gtest/gtest.h>

#include "observe/classify.h"

namespace plimsoll {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kStart = 0x7fa631d1d000, kTop = kStart + 8 * kMiB;

// As Linux 6.1 shows them: a guard; a stack of 8 MiB and a map of 20 MiB that became one mapping.
std::vector<Vma> merged() {
  Vma guard;
  guard.start = kStart - 4096;
  guard.end = kStart;
  Vma both;
  both.start = kStart;
  both.end = kTop + 20 * kMiB;
  both.readable = both.writable = true;
  both.rss = both.pss = both.anonymous = both.private_dirty = 20 * kMiB + 8192;
  return {guard, both};
}

ResidentBytes answer(int64_t bytes) {
  return [bytes](uint64_t, uint64_t) { return bytes; };
}

TEST(MergedStacks, AreCutWhereTheThreadsRecordIs) {
  std::vector<Vma> vmas = merged();
  ASSERT_TRUE(has_guarded_maps(vmas));
  uint64_t asked = 0;
  const auto resident = [&](uint64_t start, uint64_t end) {
    EXPECT_EQ(start, kTop);
    asked = end - start;
    return 20 * static_cast<int64_t>(kMiB);
  };
  cut_merged_stacks({0x1000, kTop - 0x660, kTop + 20 * kMiB - 8, kTop + 64 * kMiB}, resident, vmas);
  EXPECT_EQ(asked, 20 * kMiB);
  ASSERT_EQ(vmas.size(), 3u);
  EXPECT_EQ(vmas[1].end, kTop);
  EXPECT_EQ(vmas[2].start, kTop);
  EXPECT_EQ(vmas[1].rss, 8192);
  EXPECT_EQ(vmas[2].rss, 20 * static_cast<int64_t>(kMiB));
  EXPECT_EQ(vmas[1].anonymous + vmas[2].anonymous, merged()[1].anonymous);
  EXPECT_NEAR(static_cast<double>(vmas[1].private_dirty), 8192, 2);
  const std::vector<MappingKind> kinds = classify(vmas, NameTable(), {});
  EXPECT_EQ(kinds[1], MappingKind::kThreadStack);
  EXPECT_EQ(kinds[2], MappingKind::kAnonymous);
}

TEST(MergedStacks, BelowAVeryLargeMapTheStackIsCounted) {
  std::vector<Vma> vmas = merged();
  vmas[1].end = kTop + 4096 * kMiB;
  const auto resident = [&](uint64_t start, uint64_t end) {
    EXPECT_EQ(start, kStart);
    EXPECT_EQ(end, kTop);
    return int64_t{12288};
  };
  cut_merged_stacks({kTop - 8}, resident, vmas);
  ASSERT_EQ(vmas.size(), 3u);
  EXPECT_EQ(vmas[1].rss, 12288);
}

TEST(MergedStacks, WithoutARecordOrAnAnswerNothingIsCut) {
  const std::vector<uint64_t> inside = {kTop - 0x660}, outside = {kStart - 1, kTop + 20 * kMiB};
  std::vector<Vma> vmas = merged();
  cut_merged_stacks({}, answer(8192), vmas);
  cut_merged_stacks(outside, answer(8192), vmas);
  cut_merged_stacks(inside, answer(-1), vmas);
  EXPECT_EQ(vmas.size(), 2u);
  // A stack and nothing else.
  vmas[1].end = kTop;
  cut_merged_stacks(inside, answer(8192), vmas);
  EXPECT_EQ(vmas.size(), 2u);
  // No guard before it: the kernel's, or somebody's, but no stack of glibc's.
  vmas = merged();
  vmas[0].end -= 4096;
  cut_merged_stacks(inside, answer(8192), vmas);
  EXPECT_EQ(vmas.size(), 2u);
}

TEST(MergedStacks, FiguresThatDisagreeStayWithinTheWhole) {
  for (const int64_t bytes : {int64_t{0}, int64_t{1} << 40}) {
    std::vector<Vma> vmas = merged();
    cut_merged_stacks({kTop - 0x660}, answer(bytes), vmas);
    ASSERT_EQ(vmas.size(), 3u);
    for (const Vma& vma : vmas) EXPECT_GE(vma.rss, 0);
    EXPECT_EQ(vmas[1].rss + vmas[2].rss, merged()[1].rss);
  }
}

}  // namespace
}  // namespace plimsoll
