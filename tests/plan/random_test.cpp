// Every placer on random problems, judged by check() and, where they are tiny, by trying every order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "plan/check.h"
#include "plan/random_problem.h"

namespace plimsoll::plan {
namespace {

using std::chrono::steady_clock;
using testing::IsEmpty;

SearchOptions milliseconds(int64_t count) {
  return {steady_clock::now() + std::chrono::milliseconds(count)};
}

const RandomShape kShapes[] = {
    {},
    {.buffers = 1},
    {.buffers = 60, .times = 10, .longest = 10},
    {.buffers = 200, .times = 100, .longest = 5, .zero_sizes = true},
    {.buffers = 80, .times = 20, .spaces = 3, .alignments = true},
    {.buffers = 80, .times = 3, .longest = 1, .largest = 3, .zero_sizes = true, .alignments = true},
};

// Naive's own offsets make pins that agree with each other.
void pin_some(Problem& problem) {
  const auto placement = place_naive(problem);
  for (size_t i = 0; i < problem.buffers.size(); i += 7) problem.buffers[i].offset = placement->offsets[i];
}

void expect_all_valid(const Problem& problem) {
  const auto naive = place_naive(problem), greedy = place_greedy(problem),
             search = place_search(problem, milliseconds(5)).placement;
  ASSERT_TRUE(naive && greedy && search);
  EXPECT_THAT(check(problem, *naive), IsEmpty());
  EXPECT_THAT(check(problem, *greedy), IsEmpty());
  EXPECT_THAT(check(problem, *search), IsEmpty());
  for (int s = 0; s < space_count(problem); ++s) {
    EXPECT_GE(naive->peak[s], greedy->peak[s]);
    EXPECT_GE(greedy->peak[s], search->peak[s]);
    EXPECT_GE(search->peak[s], lower_bound(problem, s).bytes);
  }
}

TEST(Random, EveryPlacerIsValidAndOrdered) {
  for (const RandomShape& shape : kShapes) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << shape.buffers << " buffers");
      Problem problem = random_problem(seed, shape);
      expect_all_valid(problem);
      pin_some(problem);
      expect_all_valid(problem);
    }
  }
}

TEST(Random, CapacityIsNeverExceeded) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    Problem problem = random_problem(seed, {});
    const int64_t bound = lower_bound(problem, 0).bytes;
    for (int64_t capacity : {bound - 1, bound, bound + bound / 10}) {
      problem.capacity = {capacity};
      const auto greedy = place_greedy(problem);
      if (greedy) {
        EXPECT_THAT(check(problem, *greedy), IsEmpty());
      }
      SearchOptions options = milliseconds(5);
      options.goal = Goal::kFit;
      const SearchResult search = place_search(problem, options);
      if (search.placement) {
        EXPECT_THAT(check(problem, *search.placement), IsEmpty());
      }
      EXPECT_TRUE(!greedy || search.placement) << "search lost what greedy found";
      if (capacity < bound) {
        EXPECT_TRUE(!search.placement && search.proven);
      }
    }
  }
}

// With the deadline far behind, only greedy's work is left: of equal parts that never meet, none is improved.
TEST(Random, ADeadlineInThePastLeavesEveryPartToGreedy) {
  const Problem part = random_problem(1, {.buffers = 200, .times = 40, .longest = 20, .spaces = 2});
  Problem problem;
  for (int copy = 0; copy < 4; ++copy) {
    for (Buffer b : part.buffers) {
      b.lower += 1000 * copy;
      b.upper += 1000 * copy;
      problem.buffers.push_back(b);
    }
  }
  const SearchResult result = place_search(problem, milliseconds(-3'600'000));
  ASSERT_TRUE(result.placement);
  EXPECT_THAT(check(problem, *result.placement), IsEmpty());
  EXPECT_FALSE(result.proven);
  const auto& offsets = result.placement->offsets;
  for (size_t i = 0; i < offsets.size(); ++i) ASSERT_EQ(offsets[i], offsets[i % part.buffers.size()]);
}

// The least peak of all: some order, placed one by one at the lowest free offset, is optimal.
int64_t least_peak(const Problem& problem) {
  const auto& buffers = problem.buffers;
  std::vector<size_t> order, pinned;
  for (size_t i = 0; i < buffers.size(); ++i) (buffers[i].offset ? pinned : order).push_back(i);
  int64_t least = kUnlimited;
  do {
    std::vector<size_t> placed = pinned;
    std::vector<int64_t> offsets(buffers.size());
    int64_t peak = 0;
    for (size_t i : pinned) {
      offsets[i] = *buffers[i].offset;
      peak = std::max(peak, offsets[i] + buffers[i].size);
    }
    for (size_t i : order) {
      const Buffer& b = buffers[i];
      int64_t& offset = offsets[i];
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t j : placed) {
          const Buffer& other = buffers[j];
          if (b.lower < other.upper && other.lower < b.upper && offset < offsets[j] + other.size &&
              offsets[j] < offset + b.size) {
            offset = (offsets[j] + other.size + b.alignment - 1) / b.alignment * b.alignment;
            moved = true;
          }
        }
      }
      placed.push_back(i);
      peak = std::max(peak, offset + b.size);
    }
    least = std::min(least, peak);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

// A rectangle of time and bytes cut into buffers, again and again: they fit it without a byte to spare.
Problem cut_rectangle(unsigned seed, int cuts, int64_t times, int64_t bytes) {
  std::mt19937 random(seed);
  Problem problem;
  problem.buffers = {{.size = bytes, .lower = 0, .upper = times, .alignment = 1}};
  for (int i = 0; i < cuts; ++i) {
    Buffer& cut = problem.buffers[random() % problem.buffers.size()];
    Buffer other = cut;
    const int64_t span = cut.upper - cut.lower;
    if (random() % 2 == 0 && span > 1) {
      cut.upper = other.lower =
          cut.lower + 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(span - 1));
    } else if (cut.size > 1) {
      cut.size = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(cut.size - 1));
      other.size -= cut.size;
    } else {
      continue;
    }
    problem.buffers.push_back(other);
  }
  std::shuffle(problem.buffers.begin(), problem.buffers.end(), random);
  problem.capacity = {bytes};
  return problem;
}

TEST(Random, SearchFindsWhatIsKnownToFit) {
  int beyond_greedy = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Problem problem = cut_rectangle(seed, 20 + static_cast<int>(seed % 20), 60, 5000);
    const SearchResult result = place_search(problem, {.goal = Goal::kFit, .work = 50'000'000});
    ASSERT_TRUE(result.placement || !result.proven) << "a solution is known";
    ASSERT_TRUE(result.placement);
    EXPECT_THAT(check(problem, *result.placement), IsEmpty());
    beyond_greedy += !place_greedy(problem);
  }
  EXPECT_GT(beyond_greedy, 10) << "too easy: greedy nearly always fits";
}

TEST(Random, WorkAndNotTheClockDecides) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Problem problem = random_problem(seed, {.buffers = 60, .times = 30});
    for (const int64_t work : {0, 1000, 100'000}) {
      const SearchResult a = place_search(problem, {.work = work}), b = place_search(problem, {.work = work});
      ASSERT_TRUE(a.placement && b.placement);
      EXPECT_EQ(a.placement->offsets, b.placement->offsets);
      EXPECT_LE(a.placement->peak[0], place_greedy(problem)->peak[0]);
    }
  }
}

TEST(Random, SearchProvesTheLeastPeakOfTinyProblems) {
  const RandomShape shapes[] = {{.buffers = 7, .times = 6, .longest = 4, .largest = 9},
                                {.buffers = 7, .times = 4, .longest = 4, .largest = 200, .alignments = true}};
  int above_bound = 0;
  for (const RandomShape& shape : shapes) {
    for (unsigned seed = 0; seed < 150; ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      Problem problem = random_problem(seed, shape);
      // A pin near the floor leaves room on both sides of it.
      if (seed % 3 == 0) problem.buffers[0].offset = 2 * problem.buffers[0].alignment;
      const SearchResult result = place_search(problem, milliseconds(60'000));
      ASSERT_TRUE(result.placement && result.proven);
      const int64_t least = least_peak(problem);
      EXPECT_EQ(result.placement->peak[0], least);
      above_bound += least > lower_bound(problem, 0).bytes;
    }
  }
  EXPECT_GT(above_bound, 10) << "too easy: the lower bound was nearly always reached";
}

}  // namespace
}  // namespace plimsoll::plan
