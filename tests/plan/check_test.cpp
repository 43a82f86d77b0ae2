#include "plan/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Two buffers that meet in time, and a third after them in the first one's place.
Problem three_buffers() {
  return {{{.size = 100, .lower = 0, .upper = 2},
           {.size = 64, .lower = 1, .upper = 4},
           {.size = 10, .lower = 2, .upper = 3}},
          {}};
}
const Placement kValid{{0, 128, 64}, {192}};

TEST(Check, AcceptsBuffersThatShareBytesAtDifferentTimes) {
  EXPECT_THAT(check(three_buffers(), kValid), IsEmpty());
}

TEST(Check, AcceptsNothingToPlace) {
  EXPECT_THAT(check({}, {}), IsEmpty());
}

TEST(Check, EveryBufferNeedsAnOffset) {
  EXPECT_THAT(check(three_buffers(), {{0, 128}, {192}}), ElementsAre("3 buffers but 2 offsets"));
  EXPECT_THAT(check(three_buffers(), {{0, 128, -64}, {192}}), ElementsAre(HasSubstr("buffer 2: not placed")));
}

TEST(Check, OffsetsAreAligned) {
  EXPECT_THAT(check(three_buffers(), {{0, 128, 32}, {192}}),
              ElementsAre("buffer 2: offset 32 is not a multiple of 64"));
}

TEST(Check, PinsAreRespected) {
  Problem problem = three_buffers();
  problem.buffers[2].offset = 0;
  EXPECT_THAT(check(problem, kValid), ElementsAre("buffer 2: pinned to offset 0 but placed at 64"));
}

TEST(Check, LiveBuffersShareNoByte) {
  EXPECT_THAT(check(three_buffers(), {{0, 64, 0}, {128}}),
              ElementsAre("buffers 0 and 1 share bytes [64, 100) during [1, 2)"));
}

TEST(Check, ABufferInsideAnotherIsFound) {
  const Problem problem{{{.size = 1000, .lower = 0, .upper = 9}, {.size = 1, .lower = 3, .upper = 4}}, {}};
  EXPECT_THAT(check(problem, {{0, 64}, {1000}}),
              ElementsAre("buffers 0 and 1 share bytes [64, 65) during [3, 4)"));
  EXPECT_THAT(check(problem, {{0, 0}, {1000}}),
              ElementsAre("buffers 0 and 1 share bytes [0, 1) during [3, 4)"));
}

TEST(Check, LifetimesAreHalfOpen) {
  Problem problem{{{.size = 64, .lower = 0, .upper = 2}, {.size = 64, .lower = 2, .upper = 3}}, {}};
  EXPECT_THAT(check(problem, {{0, 0}, {64}}), IsEmpty());
  problem.buffers[0].upper = 3;
  EXPECT_THAT(check(problem, {{0, 0}, {64}}), ElementsAre(HasSubstr("buffers 0 and 1 share")));
}

TEST(Check, EmptyBuffersShareNothing) {
  const Problem problem{{{.size = 64, .lower = 0, .upper = 2}, {.size = 0, .lower = 0, .upper = 2}}, {}};
  EXPECT_THAT(check(problem, {{0, 0}, {64}}), IsEmpty());
}

TEST(Check, SpacesAreApart) {
  Problem problem{{{.size = 64, .lower = 0, .upper = 2}, {.size = 32, .lower = 0, .upper = 2, .space = 1}},
                  {}};
  EXPECT_THAT(check(problem, {{0, 0}, {64, 32}}), IsEmpty());
  EXPECT_THAT(check(problem, {{0, 0}, {64}}), ElementsAre("space 1 has no peak"));
}

TEST(Check, CapacityIsKept) {
  Problem problem = three_buffers();
  problem.capacity = {192};
  EXPECT_THAT(check(problem, kValid), IsEmpty());
  problem.capacity = {191};
  EXPECT_THAT(check(problem, kValid), ElementsAre("space 0: peak 192 exceeds capacity 191"));
}

TEST(Check, ThePeakIsTrue) {
  EXPECT_THAT(check(three_buffers(), {{0, 128, 64}, {191}}),
              ElementsAre("space 0: peak is 192 but 191 was told"));
  EXPECT_THAT(check(three_buffers(), {{0, 128, 64}, {193}}),
              ElementsAre("space 0: peak is 192 but 193 was told"));
}

TEST(Check, MalformedProblemsAreNamed) {
  EXPECT_THAT(check({{{.size = -1, .lower = 0, .upper = 1}}, {}}, {{0}, {0}}),
              ElementsAre("buffer 0: negative size -1"));
  EXPECT_THAT(check({{{.size = 1, .lower = 3, .upper = 3}}, {}}, {{0}, {1}}),
              ElementsAre("buffer 0: empty lifetime [3, 3)"));
}

}  // namespace
}  // namespace plimsoll::plan
