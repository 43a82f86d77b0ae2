#include "plimsoll/memory_limit.h"

#include <gtest/gtest.h>

#include "plimsoll/error.h"
#include "support/recorded_tree.h"

namespace plimsoll {
namespace {

std::optional<int64_t> left_in(const RecordedTree& tree) {
  return ContainerMemoryLeft(tree.root() + "/proc", tree.root() + "/tree");
}

}  // namespace

TEST(MemoryLimit, SizesAsPeopleWriteThem) {
  EXPECT_EQ(ParseMemorySize("512MiB"), 512 << 20);
  EXPECT_EQ(ParseMemorySize("1.5 GiB"), int64_t{3} << 29);
  EXPECT_EQ(ParseMemorySize("500KB"), 500'000);
  EXPECT_EQ(ParseMemorySize("1048576"), 1 << 20);
  for (const char* wrong : {"", "MiB", "-5", "0", "12 parsecs", "1e99", "nan"})
    EXPECT_THROW(ParseMemorySize(wrong), Error) << wrong;
}

TEST(MemoryLimit, WhatVersion2Leaves) {
  RecordedTree tree;
  tree.add("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  tree.add("/proc/self/cgroup", "0::/pod/box\n");
  const std::string box = "tree/sys/fs/cgroup/pod/box/", pod = "tree/sys/fs/cgroup/pod/";
  for (const std::string& place : {box, pod}) tree.add("/" + place + "cgroup.controllers", "cpu memory\n");
  tree.add("/tree/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
  tree.add("/" + box + "memory.max", "max\n");
  EXPECT_FALSE(left_in(tree));
  tree.add("/" + box + "memory.max", "1000000\n");
  tree.add("/" + box + "memory.current", "300000\n");
  tree.add("/" + box + "memory.stat", "anon 100000\ninactive_file 150000\nactive_file 50000\n");
  EXPECT_EQ(left_in(tree), 900'000);
  // The one above is tighter.
  tree.add("/" + pod + "memory.max", "800000\n");
  tree.add("/" + pod + "memory.current", "500000\n");
  tree.add("/" + pod + "memory.stat", "inactive_file 0\nactive_file 0\n");
  EXPECT_EQ(left_in(tree), 300'000);
  tree.add("/" + pod + "memory.current", "900000\n");
  EXPECT_EQ(left_in(tree), 1);
}

TEST(MemoryLimit, WhatVersion1Leaves) {
  RecordedTree tree;
  tree.add("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  tree.add("/proc/self/cgroup", "4:memory:/box\n");
  const std::string box = "tree/sys/fs/cgroup/memory/box/";
  tree.add("/" + box + "memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(left_in(tree));
  tree.add("/" + box + "memory.limit_in_bytes", "1000000\n");
  tree.add("/" + box + "memory.usage_in_bytes", "400000\n");
  tree.add("/" + box + "memory.stat", "inactive_file 1\ntotal_inactive_file 100000\ntotal_active_file 0\n");
  EXPECT_EQ(left_in(tree), 700'000);
}

TEST(MemoryLimit, NoCgroupIsNoLimit) {
  EXPECT_FALSE(left_in(RecordedTree()));
  EXPECT_GE(ParseMemoryLimit("container"), 0);
  EXPECT_EQ(ParseMemoryLimit("2KiB"), 2048);
}

}  // namespace plimsoll
