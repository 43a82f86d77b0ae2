#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "plimsoll/error.h"
#include "plimsoll/observe.h"

namespace plimsoll {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

int64_t allowed_rest(int64_t bytes) {
  return std::max(kMiB, bytes / 50);
}

TEST(ObserverTest, SumsUpItself) {
  Observer observer(::getpid(), {.tree = false});
  const Sample sample = observer.Read();
  ASSERT_FALSE(sample.gap) << sample.gap_reason;
  EXPECT_TRUE(sample.exact);
  EXPECT_GT(sample.process.heap_bytes, 0);
  EXPECT_GT(sample.process.stack_bytes, 0);
  EXPECT_GT(sample.process.shared_file_bytes, 0);
  EXPECT_LE(std::abs(sample.process.kernel_bytes - sample.process.sum_bytes),
            allowed_rest(sample.process.kernel_bytes));
  EXPECT_EQ(sample.process.processes, 1);
  EXPECT_GE(sample.process.threads, 1);
  EXPECT_GE(sample.process.descriptors, 3);
  EXPECT_GT(sample.process.mappings, 10);
  EXPECT_FALSE(observer.Ended());
  EXPECT_GT(observer.OwnCpuSeconds(), 0);
}

TEST(ObserverTest, CheapSamplesFollowTheKernelsFigure) {
  Observer observer(::getpid(), {.tree = false, .cost_limit = 0});
  const Sample full = observer.Read();
  std::vector<char> block(64 * kMiB, 1);
  const Sample cheap = observer.Read();
  ASSERT_TRUE(full.exact);
  ASSERT_FALSE(cheap.exact);
  EXPECT_NEAR(static_cast<double>(cheap.process.kernel_bytes - full.process.kernel_bytes), 64.0 * kMiB,
              3.0 * kMiB);
  EXPECT_NEAR(static_cast<double>(cheap.process.sum_bytes - full.process.sum_bytes), 64.0 * kMiB, 3.0 * kMiB);
  EXPECT_EQ(block[kMiB], 1);
}

TEST(ObserverTest, RefusesWhatIsNoProcess) {
  for (const int pid : {0, -1, 999'999'999}) {
    try {
      Observer observer(pid);
      FAIL() << pid << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    }
  }
}

}  // namespace
}  // namespace plimsoll
