// Problems as large as they come: 60,000 buffers in a second of one core.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <ctime>

#include "plan/check.h"
#include "plan/random_problem.h"
#include "support/sanitized.h"

namespace plimsoll::plan {
namespace {

using testing::IsEmpty;

constexpr int kMany = 60'000;

// Of this thread: what else the machine does is not counted.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Placement placed_in_time(const char* what, const Problem& problem) {
  const double start = thread_seconds();
  const SearchResult found = place_search(problem, {.deadline = std::chrono::steady_clock::now()});
  const double seconds = thread_seconds() - start;
  fmt::print("{}: {} buffers, {:.3f} s of one core, peak {:.3f} of the lower bound\n", what,
             problem.buffers.size(), seconds,
             double(found.placement->peak[0]) / double(lower_bound(problem, 0).bytes));
  EXPECT_LT(seconds, kSanitized ? 60 : 1) << what;
  EXPECT_THAT(check(problem, *found.placement), IsEmpty()) << what;
  return *found.placement;
}

class Large : public testing::TestWithParam<int64_t> {};  // the longest lifetime

TEST_P(Large, IsPlacedInASecond) {
  RandomShape shape;
  shape.buffers = kMany, shape.times = kMany, shape.longest = GetParam(), shape.largest = 1 << 20;
  Problem problem = random_problem(1, shape);
  const Placement placement = placed_in_time("free", problem);
  for (size_t i = 0; i < problem.buffers.size(); ++i) problem.buffers[i].offset = placement.offsets[i];
  EXPECT_EQ(placed_in_time("pinned to their offsets", problem).offsets, placement.offsets);
}

INSTANTIATE_TEST_SUITE_P(Lifetimes, Large, testing::Values(50, 3'000, 30'000));

// Pins that meet are found wherever they are: against every pair.
TEST(Pins, CollideOrDoNot) {
  int collisions = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomShape shape;
    shape.buffers = 8, shape.times = 20, shape.largest = 30, shape.zero_sizes = true;
    Problem problem = random_problem(seed, shape);
    for (Buffer& b : problem.buffers) b.offset = (b.size * 7919 + b.lower * 31) % 200;
    bool meet = false;
    for (const Buffer& a : problem.buffers)
      for (const Buffer& b : problem.buffers)
        meet |= &a != &b && a.lower < b.upper && b.lower < a.upper && *a.offset < *b.offset + b.size &&
                *b.offset < *a.offset + a.size && a.size > 0 && b.size > 0;
    collisions += meet;
    EXPECT_EQ(place_greedy(problem).has_value(), !meet) << "seed " << seed;
  }
  EXPECT_GT(collisions, 60);
  EXPECT_LT(collisions, 240);
}

}  // namespace
}  // namespace plimsoll::plan
