// The memory limit, as the kernel holds it and as the receipt tells it.
#include <gtest/gtest.h>
#include <plimsoll/isolate.h>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <cstdlib>
#include <fstream>

#include "isolate/surroundings.h"
#include "support/leftovers.h"

namespace plimsoll {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

#define NEED_MEMORY_CGROUP() \
  if (!surroundings()->memory) GTEST_SKIP() << "no memory cgroup can be made here"

// Takes `bytes` of memory, in one step, and touches it all.
constexpr std::chrono::seconds kPatience(20);

Command take(int64_t bytes) {
  Command command;
  command.argv = {"/usr/bin/python3", "-S", "-c",
                  "import mmap,os\nm=mmap.mmap(-1," + std::to_string(bytes) +
                      ",flags=mmap.MAP_PRIVATE|mmap.MAP_ANONYMOUS)\nfor i in range(0,len(m),4096): m[i]=1\n"};
  command.standard_output = command.standard_error = Output::kCapture;
  return command;
}

TEST(MemoryLimit, OverTheLimitIsStoppedAndSaidSo) {
  NEED_MEMORY_CGROUP();
  const Residents before;
  const Completed done = Exec(take(100 * kMiB), {.memory_bytes = 32 * kMiB, .wall_time = kPatience});
  EXPECT_EQ(done.receipt.ending, Ending::kMemoryLimit);
  EXPECT_TRUE(done.receipt.limit_hit);
  EXPECT_EQ(done.receipt.signal, SIGKILL);
  EXPECT_EQ(done.receipt.limit_bytes, 32 * kMiB);
  EXPECT_LE(done.receipt.peak_bytes, 32 * kMiB);
  EXPECT_GT(done.receipt.peak_bytes, 31 * kMiB);
  EXPECT_EQ(Residents(), before);
}

TEST(MemoryLimit, BelowItNothingHappens) {
  NEED_MEMORY_CGROUP();
  const Completed done = Exec(take(20 * kMiB), {.memory_bytes = 40 * kMiB});
  EXPECT_EQ(done.receipt.ending, Ending::kExited);
  EXPECT_EQ(done.receipt.exit_code, 0) << done.error;
  EXPECT_FALSE(done.receipt.limit_hit);
  EXPECT_GT(done.receipt.peak_bytes, 20 * kMiB);
  EXPECT_LT(done.receipt.peak_bytes, 40 * kMiB);
}

// The kernel picks one process; the rest of the job does not go on without it.
TEST(MemoryLimit, TheWholeGroupEndsWhenOneOfItIsKilled) {
  NEED_MEMORY_CGROUP();
  const Residents before;
  Command command = take(100 * kMiB);
  command.argv = {"/bin/sh", "-c",
                  "sleep 100 & /usr/bin/python3 -S -c \"x=b'x'*100000000\"; sleep 100; echo survived"};
  const Completed done = Exec(command, {.memory_bytes = 32 * kMiB});
  EXPECT_EQ(done.receipt.ending, Ending::kMemoryLimit);
  EXPECT_EQ(done.output, "");
  EXPECT_EQ(Residents(), before);
}

// Version 1 counts the dead where they lived.
TEST(MemoryLimit, AProcessThatIsKilledInACgroupOfTheJobsOwnCountsToo) {
  NEED_MEMORY_CGROUP();
  const Residents before;
  Command command = take(0);
  command.argv = {
      "/bin/sh", "-c",
      "d=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup); [ -f $d/tasks ] || "
      "exit 9; mkdir $d/below && echo $$ >$d/below/cgroup.procs || exit 9; "
      "/usr/bin/python3 -S -c \"x=b'x'*100000000\"; sleep 100; echo survived"};
  command.bare = true;
  const Completed done = Exec(command, {.memory_bytes = 32 * kMiB});
  if (done.receipt.exit_code == 9) GTEST_SKIP() << "no version 1, or not ours to divide";
  EXPECT_EQ(done.receipt.ending, Ending::kMemoryLimit);
  EXPECT_TRUE(done.receipt.limit_hit);
  EXPECT_EQ(Residents(), before);
}

// Page cache counts, but gives way.
TEST(MemoryLimit, WritingMoreThanTheLimitToAFileIsFine) {
  NEED_MEMORY_CGROUP();
  char name[] = "/var/tmp/plimsoll-test-XXXXXX";
  const int file = ::mkstemp(name);
  ASSERT_GE(file, 0);
  ::close(file);
  Command command = take(0);
  command.argv = {"/bin/sh", "-c", std::string("head -c 67108864 /dev/zero > ") + name};
  const Completed done = Exec(command, {.memory_bytes = 16 * kMiB});
  ::unlink(name);
  EXPECT_EQ(done.receipt.ending, Ending::kExited) << done.error;
  EXPECT_EQ(done.receipt.exit_code, 0) << done.error;
  EXPECT_FALSE(done.receipt.limit_hit);
}

// The story of the issue: without reclaiming, the caller's own figure stays up by what the job wrote.
TEST(MemoryLimit, WhatAJobLeftInThePageCacheIsGivenBack) {
  NEED_MEMORY_CGROUP();
  struct statfs files = {};
  ASSERT_EQ(::statfs("/var/tmp", &files), 0);
  if (files.f_type == TMPFS_MAGIC || files.f_type == RAMFS_MAGIC)
    GTEST_SKIP() << "/var/tmp is in memory itself: there is no cache to give back";
  char name[] = "/var/tmp/plimsoll-test-XXXXXX";
  const int file = ::mkstemp(name);
  ASSERT_GE(file, 0);
  ::close(file);
  Command command = take(0);
  command.argv = {"/bin/sh", "-c", std::string("head -c 25165824 /dev/zero > ") + name + "; sync " + name};
  const Completed done = Exec(command);
  ::unlink(name);
  ASSERT_EQ(done.receipt.exit_code, 0) << done.error;
  // What stays on the caller's own figure is seen where nobody else uses its cgroup: tests/cli/test_exec.py.
  EXPECT_GT(done.receipt.returned_bytes, 23 * kMiB);
}

TEST(MemoryLimit, ThePeakIsTheKernelsOwn) {
  NEED_MEMORY_CGROUP();
  Command command = take(30 * kMiB);
  // Not a page more once it has said that it has them.
  command.argv[3] += "os.write(5, b'x')\nos.read(0, 1)\nos._exit(0)\n";
  int ends[2], ready[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  command.descriptors = {{ends[0], 0}, {ready[1], 5}};
  Job job = Job::Start(command, {.memory_bytes = 100 * kMiB});
  ::close(ends[0]);
  ::close(ready[1]);
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  const MemoryCgroup cgroup({.version = surroundings()->memory->version,
                             .controllers = {},
                             .path = "",
                             .directory = job.CgroupDirectory(),
                             .mount_point = job.CgroupDirectory()});
  const int64_t kernel = cgroup.peak_bytes().value_or(-1);
  EXPECT_EQ(job.PeakBytes(), kernel);
  ::close(ends[1]);
  const Completed done = job.Wait();
  EXPECT_NEAR(static_cast<double>(done.receipt.peak_bytes), static_cast<double>(kernel), 256 << 10);
}

TEST(MemoryLimit, ThePeakCanBeReset) {
  NEED_MEMORY_CGROUP();
  Command command = take(0);
  command.argv[3] = "x=b'x'*50000000\ndel x\nprint(1,flush=True)\nimport sys\nsys.stdin.read()\n";
  int in[2], out[2];
  ASSERT_EQ(::pipe2(in, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(out, O_CLOEXEC), 0);
  command.descriptors = {{in[0], 0}, {out[1], 1}};
  Job job = Job::Start(command);
  ::close(in[0]);
  ::close(out[1]);
  char byte = 0;
  ASSERT_EQ(::read(out[0], &byte, 1), 1);
  EXPECT_GT(job.PeakBytes(), 50000000);
  job.ResetPeak();
  if (surroundings()->memory->version == 1) {
    EXPECT_LT(job.PeakBytes(), 40000000);
  }
  ::close(in[1]);
  const Completed done = job.Wait();
  ::close(out[0]);
  EXPECT_GT(done.receipt.peak_bytes, 50000000) << "the receipt's is of the whole life";
}

TEST(MemoryLimit, ByteSecondsAreAboutMemoryTimesTime) {
  NEED_MEMORY_CGROUP();
  Command command = take(50 * kMiB);
  command.argv[3] += "import time\ntime.sleep(0.5)\n";
  const Receipt receipt = Exec(command).receipt;
  const double at_most = static_cast<double>(receipt.peak_bytes) * receipt.wall_ms / 1000;
  EXPECT_LE(receipt.byte_seconds, at_most);
  EXPECT_GE(receipt.byte_seconds, 50.0 * kMiB * 0.5);
}

// A limit too small for the program at hand: it is stopped, not us.
TEST(MemoryLimit, TooSmallForTheProgramToStart) {
  NEED_MEMORY_CGROUP();
  const Residents before;
  const Completed done = Exec(take(0), {.memory_bytes = kMiB, .wall_time = kPatience});
  EXPECT_EQ(done.receipt.ending, Ending::kMemoryLimit) << ending_name(done.receipt.ending);
  EXPECT_EQ(Residents(), before);
}

TEST(MemoryLimit, ManyOverAndManyJustBelow) {
  NEED_MEMORY_CGROUP();
  const char* asked = std::getenv("PLIMSOLL_LIMIT_JOBS");
  const int jobs = asked != nullptr ? std::atoi(asked) : 25;  // the benchmark does 100
  const Residents before;
  for (int i = 0; i < jobs; ++i) {
    const Receipt over = Exec(take(60 * kMiB), {.memory_bytes = 16 * kMiB}).receipt;
    ASSERT_EQ(over.ending, Ending::kMemoryLimit) << i;
  }
  const int64_t base = Exec(take(0)).receipt.peak_bytes;
  for (int i = 0; i < jobs; ++i) {
    const int64_t limit = 40 * kMiB;
    const Completed below = Exec(take(limit * 9 / 10 - base), {.memory_bytes = limit});
    ASSERT_EQ(below.receipt.ending, Ending::kExited) << i;
    ASSERT_EQ(below.receipt.exit_code, 0) << below.error;
  }
  EXPECT_EQ(Residents(), before);
}

}  // namespace
}  // namespace plimsoll
