#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "holder.h"
#include "observe/budget.h"
#include "observe/share_budget.h"
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
  observed::Holder holder;
  Observer observer(holder.pid(), {.cost_limit = 0});
  const Sample full = observer.Read();
  ASSERT_EQ(holder.tell("map 67108864"), "ok");
  const Sample cheap = observer.Read();
  ASSERT_TRUE(full.exact);
  ASSERT_FALSE(cheap.exact);
  const double expected = 64.0 * kMiB;
  EXPECT_NEAR(static_cast<double>(cheap.process.kernel_bytes - full.process.kernel_bytes), expected, kMiB);
  EXPECT_NEAR(static_cast<double>(cheap.process.sum_bytes - full.process.sum_bytes), expected, kMiB);
}

TEST(ObserverTest, FullSamplesBecomeRarerByTheirCost) {
  CostBudget budget(0.004);
  double cheap = 0.0003, full = 0.020, spent = 0;
  int fulls = 0;
  for (int second = 0; second < 1000; ++second) {
    const bool affords = budget.affords_full(second);
    budget.charge(affords ? full : cheap, affords);
    spent += affords ? full : cheap;
    fulls += affords ? 1 : 0;
  }
  EXPECT_LE(spent / 1000, 0.005);
  EXPECT_GT(fulls, 100);
  EXPECT_DOUBLE_EQ(budget.spent(), spent);
  const bool affords = budget.affords_full(1000);
  budget.charge_apart(100);
  EXPECT_EQ(budget.affords_full(1000), affords);
  EXPECT_DOUBLE_EQ(budget.spent(), spent + 100);
  CostBudget poor(1e-12);
  EXPECT_TRUE(poor.affords_full(0));
  poor.charge(0.05, true);
  EXPECT_FALSE(poor.affords_full(1));
  EXPECT_TRUE(poor.affords_full(2));  // with the first alone nobody knows what grows
  poor.charge(0.05, true);
  EXPECT_FALSE(poor.affords_full(1e6));
  CostBudget patient(1e-12);
  patient.charge(0.06, true);
  EXPECT_FALSE(patient.affords_full(1e6));
  CostBudget boundless(1);
  boundless.charge(100, true);
  EXPECT_TRUE(boundless.affords_full(1));
}

// A millisecond of processor time; whether it was no more, which an emulated processor does not promise.
bool burn_a_millisecond() {
  timespec begin = {}, now = {};
  const auto burned = [&] {
    return (now.tv_sec - begin.tv_sec) * 1'000'000'000 + now.tv_nsec - begin.tv_nsec;
  };
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  do ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  while (burned() < 1'000'000);
  return burned() < 1'500'000;
}

TEST(ObserverTest, SharesAreAskedForWithinABudgetOfTheirOwn) {
  EXPECT_FALSE(ShareBudget(0).affords(true));  // outside of a reading
  constexpr int kTries = 50;
  for (int tries = 1; tries <= kTries; ++tries) {
    ShareBudget budget(0);
    int walks = 0, refreshed = 0;
    bool as_meant = true;
    for (int reading = 0; reading < 100; ++reading) {
      budget.begin_reading();
      for (; budget.affords(false); ++refreshed) as_meant &= budget.spend(burn_a_millisecond);
      for (; budget.affords(true); ++walks) as_meant &= budget.spend(burn_a_millisecond);
    }
    EXPECT_GE(budget.spent(), 0.006);
    EXPECT_LE(walks + refreshed, 7);  // six milliseconds, whatever is asked
    if (!as_meant) continue;
    EXPECT_GE(refreshed, 1);
    EXPECT_LE(refreshed, 6);
    EXPECT_GE(walks, 1);
    return;
  }
  FAIL() << "no millisecond was one in " << kTries << " tries";
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
