#include <gtest/gtest.h>

#include "observe/container.h"
#include "support/recorded_tree.h"

namespace plimsoll {
namespace {

int64_t stack_bytes(const char* meminfo, const char* loadavg) {
  RecordedTree tree;
  tree.add("/proc/meminfo", meminfo);
  tree.add("/proc/loadavg", loadavg);
  FileReader reader;
  return kernel_stack_bytes_per_thread(tree.root() + "/proc", reader);
}

TEST(KernelStacks, AreAPowerOfTwoNearTheQuotient) {
  EXPECT_EQ(stack_bytes("KernelStack: 1600 kB\n", "0.1 0.2 0.3 1/100 77\n"), 16 << 10);
  EXPECT_EQ(stack_bytes("KernelStack: 1520 kB\n", "0.1 0.2 0.3 1/100 77\n"), 16 << 10);
  EXPECT_EQ(stack_bytes("KernelStack: 3100 kB\n", "0.1 0.2 0.3 1/100 77\n"), 32 << 10);
}

TEST(KernelStacks, ZombiesHaveNone) {
  EXPECT_EQ(stack_bytes("KernelStack: 1600 kB\n", "0.1 0.2 0.3 1/200 77\n"), 16 << 10);
}

TEST(KernelStacks, WithoutAnAnswerTheUsualSize) {
  EXPECT_EQ(stack_bytes("MemTotal: 9 kB\n", "0.1 0.2 0.3 1/100 77\n"), 16 << 10);
  EXPECT_EQ(stack_bytes("KernelStack: 1600 kB\n", "rubbish"), 16 << 10);
}

}  // namespace
}  // namespace plimsoll
