// What a process was told to take must be found, in its kind and within 5 %.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "holder.h"
#include "plimsoll/observe.h"

namespace plimsoll {
namespace {

using observed::Holder;

constexpr int64_t kMiB = int64_t{1} << 20;

struct KindCase {
  const char* command;  // of the holder
  int64_t bytes;
  int64_t ProcessView::*member;
  const char* where = "";  // a directory for a file
};

void PrintTo(const KindCase& one, std::ostream* out) {
  *out << one.command << " in " << one.where;
}

class AccountKindTest : public ::testing::TestWithParam<KindCase> {};

void expect_reconciled(const Sample& sample) {
  ASSERT_FALSE(sample.gap) << sample.gap_reason;
  EXPECT_LE(std::abs(sample.process.kernel_bytes - sample.process.sum_bytes),
            std::max(kMiB, sample.process.kernel_bytes / 50));
}

TEST_P(AccountKindTest, IsFound) {
  const KindCase& one = GetParam();
  const std::string path =
      std::string(one.where).empty() ? "" : fmt::format("{}/plimsoll_holder_{}", one.where, ::getpid());
  Holder holder;
  ASSERT_GT(holder.pid(), 0);
  Observer observer(holder.pid(), {.cost_limit = 1});
  const Sample before = observer.Read();
  const std::string answer = holder.tell(fmt::format("{} {} {}", one.command, one.bytes, path));
  if (!path.empty()) std::filesystem::remove(path);
  if (answer != "ok" && !path.empty()) GTEST_SKIP() << answer;
  ASSERT_EQ(answer, "ok");
  const Sample after = observer.Read();
  expect_reconciled(before);
  expect_reconciled(after);
  const auto grown = static_cast<double>(after.process.*one.member - before.process.*one.member);
  const auto expected = static_cast<double>(one.bytes);
  EXPECT_NEAR(grown, expected, 0.05 * expected) << ToJson(before) << "\n" << ToJson(after);
  // Nothing else grew by as much as a tenth of it.
  const auto sum = static_cast<double>(after.process.sum_bytes - before.process.sum_bytes);
  EXPECT_NEAR(sum, grown, 0.1 * expected);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, AccountKindTest,
    ::testing::Values(KindCase{"heap", 40 * kMiB, &ProcessView::heap_bytes},
                      KindCase{"arena", 20 * kMiB, &ProcessView::allocator_bytes},
                      KindCase{"arena", 150 * kMiB, &ProcessView::allocator_bytes},  // several heaps
                      KindCase{"malloc", 32 * kMiB, &ProcessView::allocator_bytes},
                      KindCase{"malloc", 10'000'000, &ProcessView::allocator_bytes},
                      KindCase{"map", 32 * kMiB, &ProcessView::anonymous_bytes},
                      KindCase{"stack", 7 * kMiB, &ProcessView::stack_bytes},
                      KindCase{"shared", 16 * kMiB, &ProcessView::shared_memory_bytes},
                      KindCase{"memfd", 16 * kMiB, &ProcessView::shared_memory_bytes},
                      KindCase{"sysv", 16 * kMiB, &ProcessView::shared_memory_bytes},
                      KindCase{"tmpfs", 16 * kMiB, &ProcessView::shared_memory_bytes, "/dev/shm"},
                      KindCase{"private_file", 16 * kMiB, &ProcessView::private_file_bytes, "/var/tmp"},
                      KindCase{"shared_file", 16 * kMiB, &ProcessView::shared_file_bytes, "/var/tmp"}));

}  // namespace
}  // namespace plimsoll
