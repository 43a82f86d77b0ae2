#include "isolate/thrash_watch.h"

#include <gtest/gtest.h>

#include <vector>

namespace plimsoll {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

struct Recorded {
  int64_t limit_bytes;
  std::vector<ThrashFigures> seconds;
};

// In which second it is noticed; -1: not at all.
int noticed(const Recorded& recorded) {
  ThrashWatch watch(recorded.limit_bytes);
  ThrashWatch::Clock::time_point now{};
  watch.start(now);
  for (size_t i = 0; i < recorded.seconds.size(); ++i) {
    now = watch.next();
    if (watch.add(now, recorded.seconds[i])) return static_cast<int>(i);
  }
  return -1;
}

// All recorded with version 2 cgroups, Linux 6.1, ext4.

// Python makes 100 MiB of bytes.
const Recorded kCrawls = {32 * kMiB,
                          {{25, 38, 1150976, 468.5, 1322.5},
                           {128, 206, 372736, 493.7, 2338.9},
                           {396, 585, 237568, 557.5, 3280.3},
                           {687, 936, 290816, 637.6, 4221.9},
                           {1057, 1301, 122880, 700.5, 5185.9},
                           {1444, 1573, 167936, 729.7, 6100.8}}};
// Python starts.
const Recorded kCannotStart = {kMiB,
                               {{156, 256, 348160, 93.1, 592.4},
                                {385, 595, 405504, 162.2, 1559.4},
                                {688, 1039, 389120, 233.2, 2532.6},
                                {974, 1449, 229376, 298.0, 3477.6},
                                {1254, 1844, 163840, 375.2, 4482.4}}};

TEST(ThrashWatch, AProgramThatIsReadAgainAndAgainIsNoticed) {
  EXPECT_EQ(noticed(kCrawls), 3);
  EXPECT_EQ(noticed(kCannotStart), 3);
}

TEST(ThrashWatch, AProgramThatStartsSlowlyIsLeftAlone) {
  EXPECT_EQ(noticed({4 * kMiB,
                     {{56, 136, 1826816, 280, 945},
                      {115, 311, 1769472, 403, 1932},
                      {172, 471, 1486848, 554, 2923},
                      {228, 640, 1486848, 680, 3900}}}),
            -1);
}

TEST(ThrashWatch, FilesLargerThanTheLimitMayBeWrittenReadAndMapped) {
  const Recorded written = {2 * kMiB,
                            {{3, 0, 1888256, 184, 338},
                             {7, 0, 1769472, 262, 463},
                             {9, 0, 1859584, 307, 560},
                             {15, 0, 1761280, 441, 715},
                             {17, 0, 1847296, 442, 822}}};
  const Recorded read_again = {16 * kMiB,
                               {{713, 0, 16281600, 4, 970},
                                {1436, 0, 16166912, 12, 1966},
                                {2062, 0, 16191488, 12, 2838},
                                {2688, 0, 16191488, 12, 3710}}};
  const Recorded mapped_and_scanned = {16 * kMiB,
                                       {{672, 42, 13668352, 608, 1945},
                                        {1158, 43, 13684736, 751, 2933},
                                        {1715, 45, 13623296, 907, 3917},
                                        {2236, 46, 13611008, 1064, 4910}}};
  const Recorded mapped_at_random = {24 * kMiB,
                                     {{340, 557, 12222464, 473, 2809},
                                      {613, 987, 11988992, 503, 3715},
                                      {969, 1558, 12054528, 533, 4604},
                                      {1388, 2226, 12251136, 586, 5479},
                                      {1777, 2826, 12169216, 630, 6364}}};
  EXPECT_EQ(noticed(written), -1);
  EXPECT_EQ(noticed(read_again), -1);
  EXPECT_EQ(noticed(mapped_and_scanned), -1);
  EXPECT_EQ(noticed(mapped_at_random), -1);
}

// Copying files beside a large heap: all of its time is the kernel's, but its own pages stay.
TEST(ThrashWatch, AJobBusyInTheKernelIsLeftAlone) {
  Recorded copies = kCrawls;
  for (ThrashFigures& second : copies.seconds) second.major_faults = 38;
  EXPECT_EQ(noticed(copies), -1);
}

TEST(ThrashWatch, OneGoodSecondBeginsAnew) {
  Recorded recovers = kCrawls;
  const double worked_ms = 400;
  for (size_t i = 3; i < recovers.seconds.size(); ++i) {
    recovers.seconds[i].user_ms += worked_ms;
    recovers.seconds[i].cpu_ms += worked_ms;
  }
  EXPECT_EQ(noticed(recovers), -1);
}

}  // namespace
}  // namespace plimsoll
