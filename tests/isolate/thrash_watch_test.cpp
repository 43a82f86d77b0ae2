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

// Recorded with version 2 cgroups, Linux 6.1, ext4. Where usage was not written down, it stands just below
// the limit.

// Python makes 100 MiB of bytes.
const Recorded kCrawls = {32 * kMiB,
                          {{33447936, 1150976, 38, 468.5, 1322.5},
                           {33439744, 372736, 206, 493.7, 2338.9},
                           {33452032, 237568, 585, 557.5, 3280.3},
                           {33443840, 290816, 936, 637.6, 4221.9},
                           {33427456, 122880, 1301, 700.5, 5185.9},
                           {33476608, 167936, 1573, 729.7, 6100.8}}};
// Python starts.
const Recorded kCannotStart = {kMiB,
                               {{1040384, 348160, 256, 93.1, 592.4},
                                {1007616, 405504, 595, 162.2, 1559.4},
                                {1048576, 389120, 1039, 233.2, 2532.6},
                                {1048576, 229376, 1449, 298.0, 3477.6},
                                {970752, 163840, 1844, 375.2, 4482.4}}};

// The same with version 1, Linux 6.18, overlayfs and far more read ahead.
const Recorded kStartsTooSlowly = {3 * kMiB,
                                   {{3129344, 2723840, 500, 3, 500},
                                    {3129344, 2691072, 844, 3, 884},
                                    {3129344, 2686976, 1152, 3, 1163},
                                    {3129344, 2588672, 1433, 3, 1425},
                                    {3129344, 2658304, 1772, 3, 1741}}};

TEST(ThrashWatch, AProgramThatIsReadAgainAndAgainIsNoticed) {
  EXPECT_EQ(noticed(kCrawls), 3);
  EXPECT_EQ(noticed(kCannotStart), 3);
  EXPECT_EQ(noticed(kStartsTooSlowly), 3);
}

TEST(ThrashWatch, AProgramThatStartsSlowlyIsLeftAlone) {
  EXPECT_EQ(noticed({4 * kMiB,
                     {{4177920, 1826816, 136, 280, 945},
                      {4177920, 1769472, 311, 403, 1932},
                      {4177920, 1486848, 471, 554, 2923},
                      {4177920, 1486848, 640, 680, 3900}}}),
            -1);
}

TEST(ThrashWatch, FilesLargerThanTheLimitMayBeWrittenReadAndMapped) {
  const Recorded written = {2 * kMiB,
                            {{2080768, 1888256, 0, 184, 338},
                             {2080768, 1769472, 0, 262, 463},
                             {2080768, 1859584, 0, 307, 560},
                             {2080768, 1761280, 0, 441, 715},
                             {2080768, 1847296, 0, 442, 822}}};
  const Recorded read_again = {16 * kMiB,
                               {{16760832, 16281600, 0, 4, 970},
                                {16760832, 16166912, 0, 12, 1966},
                                {16760832, 16191488, 0, 12, 2838},
                                {16760832, 16191488, 0, 12, 3710}}};
  const Recorded mapped_and_scanned = {16 * kMiB,
                                       {{16760832, 13668352, 42, 608, 1945},
                                        {16760832, 13684736, 43, 751, 2933},
                                        {16760832, 13623296, 45, 907, 3917},
                                        {16760832, 13611008, 46, 1064, 4910}}};
  const Recorded mapped_at_random = {24 * kMiB,
                                     {{25149440, 12222464, 557, 473, 2809},
                                      {25149440, 11988992, 987, 503, 3715},
                                      {25149440, 12054528, 1558, 533, 4604},
                                      {25149440, 12251136, 2226, 586, 5479},
                                      {25149440, 12169216, 2826, 630, 6364}}};
  EXPECT_EQ(noticed(written), -1);
  EXPECT_EQ(noticed(read_again), -1);
  EXPECT_EQ(noticed(mapped_and_scanned), -1);
  EXPECT_EQ(noticed(mapped_at_random), -1);
}

TEST(ThrashWatch, FarFromItsLimitAProgramMayBeReadFromASlowDisk) {
  Recorded starts = kCrawls;
  starts.limit_bytes = 64 * kMiB;
  EXPECT_EQ(noticed(starts), -1);
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
