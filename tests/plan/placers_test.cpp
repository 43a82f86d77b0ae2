// What the placers promise, on problems small enough to follow by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/check.h"
#include "plan/placement.h"
#include "plimsoll/error.h"

namespace plimsoll::plan {
namespace {

using std::chrono::steady_clock;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

SearchResult search(const Problem& problem, Goal goal = Goal::kMinimise) {
  return place_search(problem, {steady_clock::now() + std::chrono::seconds(60), goal});
}

// A chain: each buffer meets only its neighbours.
const Problem kChain{{{.size = 640, .lower = 0, .upper = 2},
                      {.size = 128, .lower = 1, .upper = 3},
                      {.size = 256, .lower = 2, .upper = 4},
                      {.size = 512, .lower = 3, .upper = 5}},
                     {}};

TEST(LowerBound, IsTheMostBytesAlive) {
  const LowerBound bound = lower_bound(kChain, 0);
  EXPECT_EQ(bound.bytes, 768);
  EXPECT_EQ(bound.at, 1);
}

TEST(LowerBound, OfASpaceWithoutBuffersIsZero) {
  EXPECT_EQ(lower_bound(kChain, 7).bytes, 0);
  EXPECT_EQ(lower_bound({}, 0).bytes, 0);
}

TEST(LowerBound, WhatEndsMakesRoomForWhatStarts) {
  EXPECT_EQ(
      lower_bound({{{.size = 5, .lower = 0, .upper = 1}, {.size = 7, .lower = 1, .upper = 2}}, {}}, 0).bytes,
      7);
}

TEST(Placers, NaiveNeverReuses) {
  const auto placement = place_naive(kChain);
  ASSERT_TRUE(placement);
  EXPECT_THAT(placement->offsets, ElementsAre(0, 640, 768, 1024));
  EXPECT_THAT(placement->peak, ElementsAre(1536));
}

TEST(Placers, AChainNeedsNoMoreThanItsLowerBound) {
  EXPECT_THAT(place_greedy(kChain)->peak, ElementsAre(768));
  EXPECT_THAT(search(kChain).placement->peak, ElementsAre(768));
  EXPECT_TRUE(search(kChain).proven);
}

TEST(Placers, NothingToPlace) {
  for (const auto& placement : {place_naive({}), place_greedy({}), search({}).placement}) {
    ASSERT_TRUE(placement);
    EXPECT_THAT(placement->offsets, IsEmpty());
    EXPECT_THAT(placement->peak, IsEmpty());
  }
}

TEST(Placers, EmptyBuffersTakeNoBytes) {
  const Problem problem{
      {{.size = 0, .lower = 0, .upper = 9}, {.size = 0, .lower = 0, .upper = 9, .offset = 64}}, {}};
  for (const auto& placement : {place_naive(problem), place_greedy(problem), search(problem).placement}) {
    ASSERT_TRUE(placement);
    EXPECT_THAT(placement->offsets, ElementsAre(0, 64));
    EXPECT_THAT(placement->peak, ElementsAre(0));
  }
}

TEST(Placers, BuffersGoAroundAPin) {
  const Problem problem{{{.size = 64, .lower = 0, .upper = 2, .offset = 128},
                         {.size = 128, .lower = 0, .upper = 1},
                         {.size = 192, .lower = 1, .upper = 2}},
                        {}};
  EXPECT_THAT(place_naive(problem)->offsets, ElementsAre(128, 192, 320));
  EXPECT_THAT(place_greedy(problem)->offsets, ElementsAre(128, 0, 192));
  const SearchResult result = search(problem);
  EXPECT_THAT(result.placement->offsets, ElementsAre(128, 0, 192));
  EXPECT_TRUE(result.proven);  // 256 bytes are alive at most, but the pin cuts them
}

TEST(Placers, CollidingPinsHaveNoPlacement) {
  const Problem problem{
      {{.size = 65, .lower = 0, .upper = 2, .offset = 0}, {.size = 1, .lower = 1, .upper = 3, .offset = 64}},
      {}};
  EXPECT_FALSE(place_naive(problem));
  EXPECT_FALSE(place_greedy(problem));
  EXPECT_FALSE(search(problem).placement);
  EXPECT_TRUE(search(problem).proven);
}

TEST(Placers, PinsMayMeetAtDifferentTimes) {
  const Problem problem{
      {{.size = 64, .lower = 0, .upper = 2, .offset = 0}, {.size = 64, .lower = 2, .upper = 3, .offset = 0}},
      {}};
  EXPECT_THAT(place_naive(problem)->peak, ElementsAre(64));
  EXPECT_THAT(search(problem).placement->peak, ElementsAre(64));
}

TEST(Placers, AlignmentCostsOnlyWhereItMust) {
  // The odd buffer fits on top: 256 + 1, not 64 + 256.
  const Problem problem{
      {{.size = 1, .lower = 0, .upper = 1}, {.size = 256, .lower = 0, .upper = 1, .alignment = 256}}, {}};
  EXPECT_THAT(place_greedy(problem)->peak, ElementsAre(257));
  EXPECT_THAT(search(problem).placement->peak, ElementsAre(257));
}

TEST(Placers, SpacesHaveTheirOwnPeaksAndCapacities) {
  Problem problem{{{.size = 64, .lower = 0, .upper = 2}, {.size = 32, .lower = 0, .upper = 2, .space = 2}},
                  {}};
  EXPECT_THAT(place_greedy(problem)->peak, ElementsAre(64, 0, 32));
  EXPECT_THAT(search(problem).placement->peak, ElementsAre(64, 0, 32));
  problem.capacity = {64, 0, 32};
  EXPECT_TRUE(place_naive(problem));
  EXPECT_TRUE(place_greedy(problem));
  EXPECT_TRUE(search(problem).placement);
  problem.capacity = {kUnlimited, 0, 31};
  EXPECT_FALSE(place_naive(problem));
  EXPECT_FALSE(place_greedy(problem));
  EXPECT_FALSE(search(problem).placement);
  EXPECT_TRUE(search(problem).proven);
}

// Any two neighbours in time need 6 bytes, but the last 3 cannot be split around the 1 in the middle.
const Problem kAboveItsBound{{{.size = 3, .lower = 0, .upper = 2, .alignment = 1, .offset = 0},
                              {.size = 1, .lower = 1, .upper = 4, .alignment = 1},
                              {.size = 2, .lower = 1, .upper = 3, .alignment = 1},
                              {.size = 5, .lower = 3, .upper = 4, .alignment = 1},
                              {.size = 3, .lower = 2, .upper = 3, .alignment = 1, .offset = 3}},
                             {}};

TEST(Search, ProvesThatTheLowerBoundIsOutOfReach) {
  ASSERT_EQ(lower_bound(kAboveItsBound, 0).bytes, 6);
  const SearchResult best = search(kAboveItsBound);
  EXPECT_GT(best.placement->peak[0], 6);
  ASSERT_TRUE(best.placement);
  EXPECT_TRUE(best.proven);
  EXPECT_THAT(check(kAboveItsBound, *best.placement), IsEmpty());
  Problem tight = kAboveItsBound;
  tight.capacity = {best.placement->peak[0]};
  EXPECT_TRUE(search(tight, Goal::kFit).placement);
  tight.capacity = {best.placement->peak[0] - 1};
  EXPECT_FALSE(search(tight, Goal::kFit).placement);
  EXPECT_TRUE(search(tight, Goal::kFit).proven);
}

TEST(Search, WithoutTimeIsAsGoodAsGreedy) {
  const SearchResult result = place_search(kAboveItsBound, {steady_clock::now()});
  ASSERT_TRUE(result.placement);
  EXPECT_LE(result.placement->peak[0], place_greedy(kAboveItsBound)->peak[0]);
}

std::string error_of(const Problem& problem) {
  try {
    place_greedy(problem);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

TEST(Validate, NamesTheBufferAndWhatIsWrong) {
  EXPECT_EQ(error_of({{{.size = -1, .lower = 0, .upper = 1}}, {}}),
            "buffer 0: a size from 0 to 2^62 expected, found -1");
  EXPECT_EQ(error_of({{{.size = 1, .lower = 1, .upper = 1}}, {}}), "buffer 0: lifetime [1, 1) is empty");
  EXPECT_EQ(error_of({{{.size = 1, .lower = 0, .upper = 1, .alignment = 48}}, {}}),
            "buffer 0: a power of two as alignment expected, found 48");
  EXPECT_EQ(error_of({{{.size = 1, .lower = 0, .upper = 1, .offset = 32}}, {}}),
            "buffer 0: a pinned offset that is aligned expected, found 32");
  EXPECT_EQ(error_of({{{.size = 1, .lower = 0, .upper = 1, .space = 1}}, {100}}),
            "buffer 0: a space with a capacity expected, found 1");
  const Buffer huge{.size = int64_t{1} << 61, .lower = 0, .upper = 1};
  EXPECT_THAT(error_of({{huge, huge, huge}, {}}), HasSubstr("more than 2^62 bytes"));
}

TEST(Validate, TheWidestLifetimeIsFine) {
  const Problem problem{{{.size = 64, .lower = std::numeric_limits<int64_t>::min(), .upper = kUnlimited}},
                        {}};
  EXPECT_THAT(search(problem).placement->peak, ElementsAre(64));
}

}  // namespace
}  // namespace plimsoll::plan
