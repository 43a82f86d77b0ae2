#include "observe/procfs.h"

#include <gtest/gtest.h>

#include "observe/smaps.h"
#include "recorded_process.h"

namespace plimsoll {
namespace {

using observed::smaps_of;
using observed::stat_line;

TEST(ProcStat, NamesMayContainAnything) {
  for (const std::string name : {"a b", ")", "(", ") R 1 (", "x) (y", "\n", ""}) {
    const auto stat = parse_stat(stat_line(42, name, 'S', 7, 3, 99));
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(stat->name, name);
    EXPECT_EQ(stat->pid, 42);
    EXPECT_EQ(stat->state, 'S');
    EXPECT_EQ(stat->parent, 7);
    EXPECT_EQ(stat->threads, 3);
    EXPECT_EQ(stat->start_ticks, 99u);
    EXPECT_EQ(stat->start_code, 4096u);
    EXPECT_EQ(stat->start_stack, 70000u);
  }
}

TEST(ProcStat, States) {
  EXPECT_TRUE(parse_stat(stat_line(2, "kthreadd", 'S', 0, 1, 1, 0x200000))->is_kernel_thread());
  EXPECT_FALSE(parse_stat(stat_line(2, "sh", 'S', 0))->is_kernel_thread());
  EXPECT_TRUE(parse_stat(stat_line(2, "sh", 'T', 0))->is_stopped());
  EXPECT_TRUE(parse_stat(stat_line(2, "sh", 't', 0))->is_stopped());
  EXPECT_TRUE(parse_stat(stat_line(2, "sh", 'Z', 0))->has_ended());
  EXPECT_FALSE(parse_stat(stat_line(2, "sh", 'Z', 0, 5))->has_ended());
}

TEST(ProcStat, CutAnywhereItIsNothingOrWhole) {
  const std::string whole = stat_line(42, "name", 'R', 7, 3, 99);
  for (size_t length = 0; length < whole.size(); ++length) {
    const auto stat = parse_stat(std::string_view(whole).substr(0, length));
    if (stat) {
      EXPECT_EQ(stat->parent, 7) << length;
    }
  }
}

TEST(ProcStatus, OldKernelsDoNotTellTheKinds) {
  const ProcessStatus old = parse_status("Name:\tx\nTgid:\t5\nVmPeak:\t9 kB\nVmRSS:\t   8 kB\nThreads:\t1\n");
  EXPECT_EQ(old.rss_bytes, 8192);
  EXPECT_EQ(old.rss_anonymous_bytes, -1);
  EXPECT_EQ(old.thread_group, 5);
}

TEST(ProcStatus, AKernelThreadHasNoMemory) {
  const ProcessStatus status = parse_status("Name:\tkworker\nTgid:\t5\nThreads:\t1\n");
  EXPECT_EQ(status.rss_bytes, 0);
  EXPECT_EQ(status.threads, 1);
}

std::vector<Vma> parse_in_pieces(const std::string& text, size_t piece_bytes, NameTable& names) {
  std::vector<Vma> vmas;
  SmapsParser parser(vmas, names);
  for (size_t at = 0; at < text.size(); at += piece_bytes)
    parser.feed(std::string_view(text).substr(at, piece_bytes));
  parser.finish();
  return vmas;
}

TEST(Smaps, PiecesMayEndAnywhere) {
  const std::string text = smaps_of(observed::small_mappings());
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{100}, size_t{4096}, size_t{1} << 20}) {
    NameTable names;
    const std::vector<Vma> vmas = parse_in_pieces(text, piece, names);
    ASSERT_EQ(vmas.size(), 4u) << piece;
    EXPECT_EQ(vmas[1].rss, 64 * 1024);
    EXPECT_EQ(vmas[1].anonymous, 50 * 1024);
    EXPECT_EQ(names[vmas[1].name], "/bin/service");
    EXPECT_EQ(vmas[0].name, vmas[1].name);
    EXPECT_EQ(vmas[3].start, 0x7ffc00000000u);
    EXPECT_TRUE(vmas[0].executable && !vmas[0].writable);
  }
}

TEST(Smaps, NamesWithSpaces) {
  NameTable names;
  const auto vmas = parse_in_pieces(
      "1000-2000 rw-p 00000000 fe:00 9          /tmp/a b\\012c (deleted)\nRss: 4 kB\n", 9, names);
  ASSERT_EQ(vmas.size(), 1u);
  EXPECT_EQ(names[vmas[0].name], "/tmp/a b\\012c (deleted)");
  EXPECT_EQ(vmas[0].device, 0xfeull << 32);
  EXPECT_EQ(vmas[0].inode, 9u);
}

TEST(Smaps, RubbishNeverCrashes) {
  const std::string text = smaps_of(observed::small_mappings());
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::string wrong = text;
    unsigned state = seed * 2654435761u + 1;
    for (int i = 0; i < 5; ++i) {
      state = state * 1664525u + 1013904223u;
      wrong[state % wrong.size()] = static_cast<char>(state >> 16);
    }
    NameTable names;
    EXPECT_LE(parse_in_pieces(wrong, 64, names).size(), 20u);
  }
}

}  // namespace
}  // namespace plimsoll
