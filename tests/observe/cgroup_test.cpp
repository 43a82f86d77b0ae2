#include "observe/cgroup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "support/recorded_tree.h"

namespace plimsoll {
namespace {

// Lines as kernels 4.19 to 6.18 write them.
constexpr const char* kMountsOfVersion1 =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
constexpr const char* kMountsOfVersion2 =
    "24 30 0:22 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 "
    "rw,nsdelegate,memory_recursiveprot\n";

void record_version_1(RecordedTree& tree) {
  tree.add("/proc/self/mountinfo", kMountsOfVersion1);
  tree.add("/proc/7/cgroup", "9:name=systemd:/\n4:memory:/box/inner\n2:cpu,cpuacct:/box\n0::/\n");
  const std::string inner = "/sys/fs/cgroup/memory/box/inner";
  tree.add(inner + "/memory.usage_in_bytes", "10960896\n");
  tree.add(inner + "/memory.max_usage_in_bytes", "20971520\n");
  tree.add(inner + "/memory.failcnt", "12\n");
  tree.add(inner + "/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
  tree.add(inner + "/memory.stat",
           "cache 6594560\nrss 1703936\nswap 4096\nhierarchical_memory_limit 33554432\n"
           "hierarchical_memsw_limit 9223372036854771712\ntotal_cache 6594561\ntotal_swap 8192\n");
  tree.add("/sys/fs/cgroup/cpu,cpuacct/box/cpuacct.usage", "1\n");
  tree.add("/sys/fs/cgroup/unified/cgroup.controllers", "\n");
}

void record_version_2(RecordedTree& tree) {
  tree.add("/proc/self/mountinfo", kMountsOfVersion2);
  tree.add("/proc/7/cgroup", "0::/user.slice/job\n");
  const std::string root = "/sys/fs/cgroup";
  tree.add(root + "/cgroup.controllers", "cpuset cpu io memory pids\n");
  tree.add(root + "/user.slice/memory.max", "67108864\n");
  tree.add(root + "/user.slice/job/cgroup.controllers", "cpu memory pids\n");
  tree.add(root + "/user.slice/job/memory.current", "5242880\n");
  tree.add(root + "/user.slice/job/memory.peak", "6291456\n");
  tree.add(root + "/user.slice/job/memory.max", "max\n");
  tree.add(root + "/user.slice/job/memory.swap.current", "0\n");
  tree.add(root + "/user.slice/job/memory.stat", "anon 4096\nfile 8192\nfile_mapped 1\n");
  tree.add(root + "/user.slice/job/memory.events",
           "low 0\nhigh 1\nmax 22\noom 2\noom_kill 1\noom_group_kill 0\n");
}

CgroupRoots roots_of(const RecordedTree& tree) {
  return {.proc = tree.root() + "/proc", .tree = tree.root()};
}

TEST(Cgroup, HybridHasItsMemoryOnVersion1AndAUnifiedTreeBeside) {
  RecordedTree tree;
  record_version_1(tree);
  const auto places = cgroup_places(7, roots_of(tree));
  const auto memory = find_controller(places, "memory");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->version, 1);
  EXPECT_EQ(memory->path, "/box/inner");
  EXPECT_EQ(memory->directory, tree.root() + "/sys/fs/cgroup/memory/box/inner");
  EXPECT_EQ(find_controller(places, "cpuacct")->directory, tree.root() + "/sys/fs/cgroup/cpu,cpuacct/box");
  EXPECT_EQ(find_unified(places)->directory, tree.root() + "/sys/fs/cgroup/unified");
  EXPECT_FALSE(find_controller(places, "pids"));
}

TEST(Cgroup, Version1Figures) {
  RecordedTree tree;
  record_version_1(tree);
  const auto cgroup = MemoryCgroup::of_process(7, roots_of(tree));
  ASSERT_TRUE(cgroup);
  EXPECT_EQ(cgroup->usage_bytes(), 10960896);
  EXPECT_EQ(cgroup->peak_bytes(), 20971520);
  EXPECT_EQ(cgroup->limit_bytes(), 33554432);
  EXPECT_EQ(cgroup->swap_bytes(), 8192);
  EXPECT_EQ(cgroup->events().oom_kills, 3);
  EXPECT_EQ(cgroup->events().limit_failures, 12);
  EXPECT_EQ(number_of(cgroup->stat(), "cache"), 6594560);
}

TEST(Cgroup, Version1WithoutLimit) {
  RecordedTree tree;
  record_version_1(tree);
  tree.add("/sys/fs/cgroup/memory/box/inner/memory.stat", "hierarchical_memory_limit 9223372036854771712\n");
  EXPECT_FALSE(MemoryCgroup::of_process(7, roots_of(tree))->limit_bytes());
}

TEST(Cgroup, Version2Figures) {
  RecordedTree tree;
  record_version_2(tree);
  const auto cgroup = MemoryCgroup::of_process(7, roots_of(tree));
  ASSERT_TRUE(cgroup);
  EXPECT_EQ(cgroup->version(), 2);
  EXPECT_EQ(cgroup->place().path, "/user.slice/job");
  EXPECT_EQ(cgroup->usage_bytes(), 5242880);
  EXPECT_EQ(cgroup->peak_bytes(), 6291456);
  EXPECT_EQ(cgroup->limit_bytes(), 67108864) << "the parent's is the tightest";
  EXPECT_EQ(cgroup->swap_bytes(), 0);
  EXPECT_EQ(cgroup->events().oom_kills, 1);
  EXPECT_EQ(cgroup->events().limit_failures, 22);
  EXPECT_EQ(number_of(cgroup->stat(), "file"), 8192) << "not file_mapped";
}

TEST(Cgroup, Version2OfAnOldKernelHasNoPeak) {
  RecordedTree tree;
  record_version_2(tree);
  tree.remove("/sys/fs/cgroup/user.slice/job/memory.peak");
  EXPECT_FALSE(MemoryCgroup::of_process(7, roots_of(tree))->peak_bytes());
}

// A container without a cgroup namespace sees its own part of the hierarchy mounted, with a path from above.
TEST(Cgroup, OnlyAPartOfTheHierarchyIsMounted) {
  RecordedTree tree;
  tree.add("/proc/self/mountinfo",
           "35 31 0:32 /docker/abc /sys/fs/cgroup/me\\040mory ro - cgroup cgroup rw,memory\n");
  tree.add("/proc/7/cgroup", "4:memory:/docker/abc\n");
  tree.add("/proc/8/cgroup", "4:memory:/docker/abcd\n");
  tree.add("/sys/fs/cgroup/me mory/memory.usage_in_bytes", "1\n");
  EXPECT_EQ(MemoryCgroup::of_process(7, roots_of(tree))->usage_bytes(), 1);
  EXPECT_FALSE(MemoryCgroup::of_process(8, roots_of(tree))) << "another container";
}

TEST(Cgroup, NoProcessNoMountNoCrash) {
  RecordedTree tree;
  EXPECT_TRUE(cgroup_places(7, roots_of(tree)).empty());
  tree.add("/proc/7/cgroup", "0::/../elsewhere\nnonsense\n:\n5:memory\n");
  tree.add("/proc/self/mountinfo", std::string("short line\n\n 1 2 3 4 5 - cgroup\n") + kMountsOfVersion2);
  EXPECT_TRUE(cgroup_places(7, roots_of(tree)).empty());
}

TEST(Cgroup, OurOwn) {
  const auto cgroup = MemoryCgroup::of_process(0);
  if (!cgroup) GTEST_SKIP() << "no memory cgroup is visible here";
  const auto by_pid = MemoryCgroup::of_process(::getpid());
  ASSERT_TRUE(by_pid);
  EXPECT_EQ(by_pid->place().directory, cgroup->place().directory);
  EXPECT_GT(cgroup->usage_bytes().value_or(1), 0);
  EXPECT_FALSE(cgroup->stat().empty());
}

TEST(Cgroup, ARemovedCgroupAnswersNothing) {
  RecordedTree tree;
  record_version_2(tree);
  const auto cgroup = MemoryCgroup::of_process(7, roots_of(tree));
  tree.remove("/sys/fs/cgroup/user.slice/job");
  EXPECT_FALSE(cgroup->usage_bytes());
  EXPECT_EQ(cgroup->events().oom_kills, 0);
}

}  // namespace
}  // namespace plimsoll
