// Programs that were once called a leak and are none, or the other way round: curves as they were seen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <plimsoll/observe.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {
namespace {

constexpr double kMiB = 1024 * 1024;

struct Watched {
  double seconds = 120, interval = 1;
  std::string command = "/usr/bin/program --serve";
  std::function<double(double)> bytes;                     // of the tree's heap, at a second
  std::function<std::vector<TreeMember>(double)> members;  // empty: one process that holds it all
  double iterations_per_second = 0;

  std::vector<Sample> samples() const {
    std::vector<Sample> all;
    for (double at = 0; at < seconds; at += interval) {
      Sample sample;
      sample.seconds = at;
      if (iterations_per_second > 0) sample.iteration = static_cast<int64_t>(at * iterations_per_second);
      sample.process.heap_bytes = static_cast<int64_t>(bytes(at));
      sample.members =
          members ? members(at) : std::vector<TreeMember>{{7, command, sample.process.heap_bytes}};
      sample.process.processes = sample.process.threads = static_cast<int64_t>(sample.members.size());
      sample.process.proportional = sample.members.size() > 1 ? 1 : 0;
      sample.process.descriptors = 5;
      sample.process.mappings = 40;
      all.push_back(sample);
    }
    return all;
  }
  Verdict verdict() const { return Judge(samples()); }
};

using Curve = std::vector<std::pair<double, double>>;  // second and MiB

double value_at(const Curve& curve, double at) {
  size_t next = 1;
  while (next + 1 < curve.size() && curve[next].first <= at) ++next;
  const auto [x, y] = curve[next - 1];
  const auto [to_x, to_y] = curve[next];
  return y + (to_y - y) * (at - x) / (to_x - x);
}

double noise(std::mt19937& random, double size) {
  return std::normal_distribution<double>(0, size)(random);
}

// Collections at random: 20 to 60 MB are filled, then nearly all of it goes.
std::vector<double> random_sawtooth(unsigned seed, double bytes_per_second, int seconds) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> height(20 * kMiB, 60 * kMiB), rate(3 * kMiB, 10 * kMiB);
  double filled = 0, top = height(random), step = rate(random);
  std::vector<double> levels;
  for (int i = 0; i < seconds; ++i) {
    filled += step;
    if (filled > top) filled = 0, top = height(random), step = rate(random);
    levels.push_back(20 * kMiB + filled + bytes_per_second * i);
  }
  return levels;
}

TEST(VerdictRivals, LowsOfARandomSawtoothThatRise) {
  for (const unsigned seed : {1u, 2u, 3u}) {
    Watched watched;
    const auto leaking = random_sawtooth(seed, 200e3, 200), steady = random_sawtooth(seed, 0, 200);
    watched.seconds = 200;
    watched.bytes = [&](double at) { return leaking[static_cast<size_t>(at)]; };
    EXPECT_EQ(watched.verdict().kind, VerdictKind::kLeak) << seed;
    watched.bytes = [&](double at) { return steady[static_cast<size_t>(at)]; };
    EXPECT_NE(watched.verdict().kind, VerdictKind::kLeak) << seed;
  }
}

TEST(VerdictRivals, ACollectedHeapThatHasNotCollectedYetIsUndecided) {
  std::mt19937 random(1);
  Watched watched;
  watched.seconds = 200;
  watched.bytes = [&](double at) { return (9 + 16 * at / 200) * kMiB + noise(random, 1e5); };
  EXPECT_EQ(watched.verdict().kind, VerdictKind::kLeak);  // the same curve of a program that frees at once
  watched.command = "/usr/bin/node server.js";
  const Verdict verdict = watched.verdict();
  EXPECT_EQ(verdict.kind, VerdictKind::kUndecided);
  EXPECT_GT(verdict.seconds_needed, 50);
  EXPECT_THAT(verdict.evidence, testing::Contains(testing::HasSubstr("V8")));
}

TEST(VerdictRivals, ACurveThatLevelsOffIsNoLeak) {
  for (const unsigned seed : {1u, 2u, 3u, 4u}) {
    std::mt19937 random(seed);
    Watched watched;
    watched.seconds = 150;
    watched.bytes = [&](double at) {
      return (73 + 5.6 * (1 - std::exp(-at / 45))) * kMiB + std::abs(noise(random, 2e5));
    };
    EXPECT_NE(watched.verdict().kind, VerdictKind::kLeak) << seed;
  }
}

TEST(VerdictRivals, AFewStairsAreUndecidedAndManyAreNot) {
  Watched watched;
  watched.bytes = [](double at) { return (50 + 2 * std::floor(at / 45)) * kMiB; };
  EXPECT_NE(watched.verdict().kind, VerdictKind::kLeak);
  watched.bytes = [](double at) { return (50 + std::floor(at / 6)) * kMiB; };
  EXPECT_EQ(watched.verdict().kind, VerdictKind::kLeak);
}

// A store that is filled until it is full.
TEST(VerdictRivals, AStoreThatIsFullIsNoLeak) {
  std::mt19937 random(2);
  Watched watched;
  watched.bytes = [&](double at) { return (4 + std::min(at, 80.0) / 8) * kMiB + noise(random, 3e4); };
  EXPECT_NE(watched.verdict().kind, VerdictKind::kLeak);
}

TEST(VerdictRivals, WorkersThatAreReplacedOutOfPhase) {
  struct Life {
    double from, to;
    int pid;
  };
  for (const unsigned seed : {1u, 2u, 3u}) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> length(40, 60), phase(0, 50);
    std::vector<Life> lives;
    for (int worker = 0; worker < 4; ++worker) {
      for (double at = -phase(random); at < 160;) {
        const double to = at + length(random);
        lives.push_back({at, to, 1000 + static_cast<int>(lives.size())});
        at = to;
      }
    }
    Watched watched;
    watched.seconds = 150;
    watched.members = [&](double at) {
      std::vector<TreeMember> members = {{1, "master", static_cast<int64_t>(8 * kMiB)}};
      for (const Life& life : lives) {
        if (life.from <= at && at < life.to)
          members.push_back({life.pid, "worker", static_cast<int64_t>((10 + (at - life.from) / 5) * kMiB)});
      }
      return members;
    };
    watched.bytes = [&](double at) {
      double sum = 0;
      for (const TreeMember& member : watched.members(at)) sum += static_cast<double>(member.bytes);
      return sum;
    };
    EXPECT_NE(watched.verdict().kind, VerdictKind::kLeak) << seed;
  }
}

// A shell that starts a command per turn: while the child lives half of each page is counted as the child's.
TEST(VerdictRivals, AChildPerTurnDoesNotHideItsParentsGrowth) {
  std::mt19937 random(3);
  const auto held = [](double at) { return 2 * kMiB + 60e3 * at; };
  Watched watched;
  watched.bytes = [&](double at) { return held(at) * (random() % 10 < 6 ? 0.5 : 1); };
  watched.members = [&](double at) {
    return std::vector<TreeMember>{{7, "bash loop.sh", static_cast<int64_t>(held(at))},
                                   {8, "bash loop.sh", 4096}};
  };
  const Verdict verdict = watched.verdict();
  EXPECT_EQ(verdict.kind, VerdictKind::kLeak);
  EXPECT_NEAR(verdict.bytes_per_second, 60e3, 3e3);
}

TEST(VerdictRivals, InATreeTheProcessIsNamed) {
  Watched watched;
  watched.members = [](double at) {
    std::vector<TreeMember> members;
    for (int pid = 100; pid < 104; ++pid)
      members.push_back({pid, "worker", static_cast<int64_t>(10 * kMiB + (pid == 102 ? 90e3 * at : 0))});
    return members;
  };
  watched.bytes = [](double at) { return 40 * kMiB + 90e3 * at; };
  const Verdict verdict = watched.verdict();
  ASSERT_EQ(verdict.kind, VerdictKind::kLeak);
  ASSERT_TRUE(verdict.grower.has_value());
  EXPECT_EQ(verdict.grower->pid, 102);
  EXPECT_EQ(verdict.grower->command, "worker");
  EXPECT_NEAR(verdict.grower->bytes_per_second, 90e3, 1e3);
  EXPECT_THAT(verdict.evidence, testing::Contains(testing::HasSubstr("process 102 (worker)")));
}

// A line under the second space of a copying collector, which a sample meets now and then.
TEST(VerdictRivals, SpikesAreNoCollections) {
  Watched watched;
  watched.bytes = [](double at) {
    const int second = static_cast<int>(at);
    if (second < 2) return (second == 0 ? 5 : 17) * kMiB;
    return (10 + 0.07 * at) * kMiB + (second % 27 == 23 ? 3 * kMiB : 0) - (second % 27 > 23 ? 0.5 * kMiB : 0);
  };
  EXPECT_EQ(watched.verdict().kind, VerdictKind::kLeak);
}

// V8 with 1,200 sessions that are kept: three collections in two minutes.
TEST(VerdictRivals, AFewCollectionsThatEachLeaveMoreAreALeak) {
  const auto sawtooth = [](double kept_per_cycle) {
    return [kept_per_cycle](double at) {
      const double cycle = std::floor((at + 11) / 37), within = (at + 11) / 37 - cycle;
      return (20 + kept_per_cycle * cycle + 33 * within) * kMiB;
    };
  };
  Watched watched;
  watched.command = "node server.js";
  watched.bytes = sawtooth(6.5);
  EXPECT_EQ(watched.verdict().kind, VerdictKind::kLeak);
  watched.bytes = sawtooth(0);
  EXPECT_NE(watched.verdict().kind, VerdictKind::kLeak);
}

// As ws was: three lows rose with their highs, and then it stayed for a minute.
TEST(VerdictRivals, AFewCollectionsThatAreLongOverAreNoLeak) {
  Watched watched;
  watched.seconds = 125;
  const auto teeth = [](double at) {
    const double turn = std::floor(at / 18);
    return (10 + 2.5 * turn + 5 * std::fmod(at, 18) / 18) * kMiB;
  };
  watched.bytes = [&](double at) { return at < 62 ? teeth(at) : 19 * kMiB; };
  EXPECT_NE(watched.verdict().kind, VerdictKind::kLeak);
  watched.bytes = teeth;
  EXPECT_EQ(watched.verdict().kind, VerdictKind::kLeak);
}

// Two collections come close together, the next two are far apart.
TEST(VerdictRivals, CollectionsAtUnevenTimesAreComparedByTheirRates) {
  Watched watched;
  watched.seconds = 125;
  watched.command = "node server.js";
  const Curve kept = {{0, 1},     {3, 17},    {8, 21.3}, {9, 15.2},   {16, 22.2}, {17, 18},
                      {58, 48.1}, {59, 31.1}, {99, 63},  {100, 46.3}, {125, 66}};
  watched.bytes = [&](double at) { return value_at(kept, at) * kMiB; };
  EXPECT_EQ(watched.verdict().kind, VerdictKind::kLeak);
  const Curve freed = {{0, 1},   {3, 17},    {8, 21.3}, {9, 15.2},   {16, 22.2}, {17, 15},
                       {58, 45}, {59, 15.1}, {99, 46},  {100, 15.3}, {125, 33}};
  watched.bytes = [&](double at) { return value_at(freed, at) * kMiB; };
  EXPECT_NE(watched.verdict().kind, VerdictKind::kLeak);
}

// Ruby fills what it has for a while, then asks for more page by page: 25, 29, 35 MiB at the same rate.
TEST(VerdictRivals, StairsMayBeClimbedSlowly) {
  const Curve stairs = {{0, 21},    {16, 21.9}, {21, 24.7},  {35, 24.9},  {42, 28.7},
                        {64, 28.9}, {73, 34.4}, {103, 34.7}, {116, 42.7}, {200, 43}};
  Watched watched;
  watched.command = "/usr/bin/ruby /usr/bin/puma";
  watched.bytes = [&](double at) { return value_at(stairs, at) * kMiB; };
  for (const double seconds : {100.0, 108.0, 125.0}) {
    watched.seconds = seconds;
    EXPECT_EQ(watched.verdict().kind, VerdictKind::kLeak) << seconds;
  }
  watched.seconds = 200;  // the next one would have been due
  EXPECT_NE(watched.verdict().kind, VerdictKind::kLeak);
}

// A little more of a large program is no leak yet, however straight; of a small one it is.
TEST(VerdictRivals, ASmallRiseCountsByWhatTheProgramHolds) {
  for (const unsigned seed : {1u, 2u, 3u}) {
    std::mt19937 random(seed);
    const auto rising = [&random](double held, double per_second, double sway) {
      return [&random, held, per_second, sway](double at) {
        const double late = std::max(0.0, at - 50), early = std::min(at, 50.0);
        return held * kMiB + (1.5 * early + late) * per_second + sway * std::sin(at / 6) + noise(random, 1e4);
      };
    };
    Watched watched;
    watched.bytes = rising(34, 17e3, 6e4);
    EXPECT_NE(watched.verdict().kind, VerdictKind::kLeak) << seed;
    watched.bytes = rising(34, 85e3, 6e4);
    EXPECT_EQ(watched.verdict().kind, VerdictKind::kLeak) << seed;
    watched.bytes = rising(0.6, 17e3, 6e4);
    EXPECT_EQ(watched.verdict().kind, VerdictKind::kLeak) << seed;
  }
}

// Sessions that are kept in two Ruby workers: in steps of several megabytes, with pauses.
const Curve kSessions = {{0, 5.6},    {8, 21.8},   {16, 25.6},  {24, 31.0},  {32, 31.8},
                         {40, 32.8},  {48, 35.5},  {56, 39.5},  {64, 40.4},  {72, 41.3},
                         {80, 42.2},  {88, 45.9},  {96, 50.9},  {104, 51.7}, {112, 52.6},
                         {120, 53.6}, {128, 54.5}, {136, 56.0}, {144, 59.3}};

// It is called a leak at once where that is much of what was held; of a large program it is not much.
TEST(VerdictRivals, ALargeRiseThatGoesOnIsALeakWithPausesToo) {
  Watched watched;
  for (const double seconds : {126.0, 130.0, 140.0}) {
    watched.seconds = seconds;
    watched.bytes = [](double at) { return value_at(kSessions, at) * kMiB; };
    const Verdict verdict = watched.verdict();
    EXPECT_EQ(verdict.kind, VerdictKind::kLeak) << seconds;
    EXPECT_THAT(verdict.evidence, testing::Contains(testing::HasSubstr("times what it held"))) << seconds;
    watched.bytes = [](double at) { return (200 + value_at(kSessions, at)) * kMiB; };
    EXPECT_NE(watched.verdict().kind, VerdictKind::kLeak) << seconds;
  }
}

// Of two rises that nobody can be sure of, the likelier one is told.
TEST(VerdictRivals, WhatIsUndecidedSpeaksOfTheLikeliestRise) {
  Watched watched;
  watched.seconds = 126;
  watched.bytes = [](double at) { return (150 + value_at(kSessions, at)) * kMiB; };
  std::vector<Sample> samples = watched.samples();
  for (Sample& sample : samples) {
    const double mapped = 16 + 0.008 * sample.seconds + (sample.seconds > 70 ? 1.5 : 0);
    sample.process.shared_file_bytes = static_cast<int64_t>(mapped * kMiB);
  }
  const Verdict verdict = Judge(samples);
  EXPECT_EQ(verdict.kind, VerdictKind::kUndecided);
  EXPECT_EQ(verdict.part, "private");
}

// However large: what was full at three quarters of the time, or levels off, is no leak.
TEST(VerdictRivals, ALargeStoreThatIsFullIsNoLeak) {
  for (const double full : {60.0, 90.0, 105.0}) {
    std::mt19937 random(3);
    Watched watched;
    watched.bytes = [&](double at) {
      return (5 + 60 * std::min(at, full) / full) * kMiB + noise(random, 2e5);
    };
    EXPECT_NE(watched.verdict().kind, VerdictKind::kLeak) << full;
    watched.bytes = [&](double at) {
      return (5 + 60 * (1 - std::exp(-3 * at / full))) * kMiB + noise(random, 2e5);
    };
    EXPECT_NE(watched.verdict().kind, VerdictKind::kLeak) << full;
  }
}

// A heap that is made larger by half whenever it is full: as long as the next step is not overdue.
TEST(VerdictRivals, StairsThatAreFilledAtASteadyRate) {
  const auto stairs = [](double rate, double until) {
    return [rate, until](double at) {
      double level = 8;
      while (level < 6 + rate * std::min(at, until)) level *= 1.5;
      return level * kMiB;
    };
  };
  Watched watched;
  watched.bytes = stairs(1.0, 1e9);
  const Verdict verdict = watched.verdict();
  EXPECT_EQ(verdict.kind, VerdictKind::kLeak);
  EXPECT_THAT(verdict.evidence, testing::Contains(testing::HasSubstr("stairs")));
  watched.bytes = stairs(2.0, 25);  // nothing more comes after 25 s
  EXPECT_NE(watched.verdict().kind, VerdictKind::kLeak);
}

// What lives in a JVM is its own word; the rest of its heap is room for garbage.
TEST(VerdictRivals, AJvmTellsGarbageFromALeak) {
  const auto judged = [](double live_per_second, double heap_per_second) {
    Watched watched;
    watched.bytes = [=](double at) { return 60 * kMiB + heap_per_second * at; };
    watched.members = [=](double at) {
      TreeMember member{7, "java -jar server.jar", static_cast<int64_t>(60 * kMiB + heap_per_second * at)};
      member.collections = static_cast<int64_t>(at / 10);
      member.live_bytes =
          static_cast<int64_t>(20 * kMiB + live_per_second * 10 * static_cast<double>(member.collections));
      return std::vector<TreeMember>{member};
    };
    return watched.verdict();
  };
  const Verdict garbage = judged(0, 1e6);
  EXPECT_EQ(garbage.kind, VerdictKind::kUndecided);
  EXPECT_THAT(garbage.evidence, testing::Contains(testing::HasSubstr("room for garbage")));
  EXPECT_EQ(judged(3e5, 1e6).kind, VerdictKind::kLeak);
  EXPECT_EQ(judged(3e5, 0).kind, VerdictKind::kLeak);  // within a heap that was touched before
  EXPECT_EQ(judged(0, 0).kind, VerdictKind::kFlat);
  // What was promoted counts as live until the old generation is full and collected.
  EXPECT_EQ(judged(3e4, 0).kind, VerdictKind::kUndecided);
  EXPECT_EQ(judged(3e4, 3e4).kind, VerdictKind::kUndecided);
}

// H2 with rows that are kept: between two collections nobody knows what lives, and the last was a while ago.
TEST(VerdictRivals, AJvmIsJudgedByWhatItsCollectionsLeft) {
  const auto judged = [](const std::vector<std::pair<double, double>>& left) {
    Watched watched;
    watched.seconds = 70;
    watched.bytes = [](double) { return 90 * kMiB; };
    watched.members = [&left](double at) {
      TreeMember member{7, "java -jar server.jar", static_cast<int64_t>(90 * kMiB)};
      member.live_bytes = 0;
      for (const auto& [x, mib] : left) {
        if (x > at) break;
        ++member.collections;
        member.live_bytes = static_cast<int64_t>(mib * kMiB);
      }
      return std::vector<TreeMember>{member};
    };
    return watched.verdict().kind;
  };
  EXPECT_EQ(judged({{3, 5.7}, {5, 8.9}, {7, 9}, {25, 13.8}, {32, 17}, {36, 25.7}}), VerdictKind::kLeak);
  EXPECT_NE(judged({{3, 5.7}, {5, 8.9}, {7, 9}, {25, 9.6}, {32, 9.9}, {36, 10.6}}), VerdictKind::kLeak);
}

// A JVM in MiB at a second: what of its heap was in use so far, and the process; a collection every `pause`
// s.
struct ToldJvm {
  std::function<double(double)> touched, held;
  double live_per_second = 0, pause = 10;

  Verdict verdict() const {
    Watched watched;
    watched.command = "java -jar server.jar";
    watched.bytes = [this](double at) { return held(at) * kMiB; };
    watched.members = [this](double at) {
      TreeMember member{7, "java -jar server.jar", static_cast<int64_t>(held(at) * kMiB)};
      member.collections = static_cast<int64_t>(at / pause);
      const double last = pause * static_cast<double>(member.collections);
      member.live_bytes = static_cast<int64_t>((5 + live_per_second * last) * kMiB);
      member.touched_bytes = static_cast<int64_t>(touched(at) * kMiB);
      return std::vector<TreeMember>{member};
    };
    return watched.verdict();
  }
};

// As netty was: direct buffers that nobody releases.
TEST(VerdictRivals, WhatGrowsBesideAJvmsHeapIsALeak) {
  ToldJvm native;
  native.touched = [](double at) { return std::min(30.0, 2 * at); };
  native.held = [](double at) { return 25 + std::min(30.0, 2 * at) + 0.15 * at; };
  const Verdict verdict = native.verdict();
  EXPECT_EQ(verdict.kind, VerdictKind::kLeak);
  EXPECT_EQ(verdict.part, "beside the heap");
  EXPECT_NEAR(verdict.bytes_per_second, 0.15 * kMiB, 0.01 * kMiB);
  EXPECT_THAT(verdict.evidence, testing::Contains(testing::HasSubstr("its heap is not what grows")));
  native.pause = 1000;  // garbage that nobody looked at may own it, if not so much
  EXPECT_LE(native.verdict().confidence, 0.85);
  native.held = [](double at) { return 25 + std::min(30.0, 2 * at) + 0.06 * at; };
  EXPECT_NE(native.verdict().kind, VerdictKind::kLeak);
}

// Committed, and used for the first time: the process grows, what lives does not, nor what is beside.
TEST(VerdictRivals, AHeapThatIsTouchedForTheFirstTimeIsNoLeak) {
  ToldJvm young;
  young.touched = [](double at) { return 10 + 0.5 * at; };
  young.held = [](double at) { return 35 + 0.5 * at; };
  const Verdict verdict = young.verdict();
  EXPECT_EQ(verdict.kind, VerdictKind::kPlateau);
  EXPECT_THAT(verdict.evidence, testing::Contains(testing::HasSubstr("room for garbage")));
  young.live_per_second = 0.4;
  EXPECT_EQ(young.verdict().kind, VerdictKind::kLeak);
}

// Seven collections a second, each of which promotes what it has no other place for; the old generation has
// room.
TEST(VerdictRivals, WhatIsPromotedBitByBitIsNoLeakBeforeTheOldGenerationIsFull) {
  ToldJvm busy;
  busy.touched = [](double at) { return 70 + 0.5 * at; };
  busy.held = [](double at) { return 95 + 0.5 * at; };
  busy.live_per_second = 0.5;
  busy.pause = 0.15;
  EXPECT_NE(busy.verdict().kind, VerdictKind::kLeak);
  busy.pause = 5;
  EXPECT_EQ(busy.verdict().kind, VerdictKind::kLeak);
}

// V8 that is asked every 5 s: what lives, what its heap takes, and the process, in MiB at a second.
struct ToldV8 {
  std::function<double(double)> live, heap, held;
  int64_t untold_heaps = 0;  // of worker threads
  double tells_until = 1e9;  // then its event loop does not turn any more
  double seconds = 125;

  Verdict verdict(bool told = true) const {
    Watched watched;
    watched.seconds = seconds;
    watched.command = "node server.js";
    watched.bytes = [this](double at) { return held(at) * kMiB; };
    watched.members = [this, told](double at) {
      TreeMember member{7, "node server.js", static_cast<int64_t>(held(at) * kMiB)};
      const double last = 5 * std::floor((std::min(at, tells_until) - 2) / 5) + 2;
      if (!told || last < 2) return std::vector<TreeMember>{member};
      member.collections = static_cast<int64_t>(last / 5) + 1;
      member.untold_heaps = untold_heaps;
      member.live_bytes = static_cast<int64_t>(live(last) * kMiB);
      member.heap_bytes = static_cast<int64_t>(heap(std::min(at, tells_until)) * kMiB);
      return std::vector<TreeMember>{member};
    };
    return watched.verdict();
  }
};

double sawtooth_of(double at) {
  return 6 * std::fmod(at, 5) / 5;
}

// As handlebars was: below what V8 fills before it collects, nobody can tell from outside.
TEST(VerdictRivals, WhatV8KeepsAfterEachCollectionIsALeak) {
  ToldV8 kept;
  kept.live = [](double at) { return 7 + 0.08 * at; };
  kept.heap = [](double at) { return 9 + 0.08 * at; };
  kept.held = [](double at) { return 13 + 0.08 * at; };
  const Verdict verdict = kept.verdict();
  EXPECT_EQ(verdict.kind, VerdictKind::kLeak);
  EXPECT_EQ(verdict.cause, Cause::kLiveHeap);
  EXPECT_GT(verdict.confidence, 0.9);
  EXPECT_EQ(verdict.part, "live");
  EXPECT_NEAR(verdict.bytes_per_second, 0.08 * kMiB, 0.004 * kMiB);
  EXPECT_NE(kept.verdict(/*told=*/false).kind, VerdictKind::kLeak);
}

// As ws was: the heap grows, its lows too, and the collector takes it all.
TEST(VerdictRivals, RoomForGarbageInV8IsNoLeak) {
  ToldV8 freed;
  freed.live = [](double at) { return 7 + 0.1 * std::sin(at); };
  freed.heap = [](double at) { return 10 + 0.3 * at; };
  freed.held = [](double at) { return 14 + 0.3 * at; };
  const Verdict verdict = freed.verdict();
  EXPECT_EQ(verdict.kind, VerdictKind::kPlateau);
  EXPECT_THAT(verdict.evidence, testing::Contains(testing::HasSubstr("room for garbage")));
  EXPECT_EQ(freed.verdict(/*told=*/false).kind, VerdictKind::kLeak);
}

// As duckdb was: an addon's memory, which V8 knows nothing of.
TEST(VerdictRivals, WhatGrowsBesideALevelHeapIsALeakOfItsOwn) {
  ToldV8 native;
  native.live = [](double) { return 7.0; };
  native.heap = [](double at) { return 9 + sawtooth_of(at); };
  native.held = [](double at) { return 20 + 0.15 * at + sawtooth_of(at); };
  const Verdict verdict = native.verdict();
  EXPECT_EQ(verdict.kind, VerdictKind::kLeak);
  EXPECT_NE(verdict.part, "live");
  native.held = [](double at) {
    return 20 + 0.1 * at;
  };  // less than V8 may have freed and kept, but all the time
  native.heap = [](double) { return 9.0; };
  EXPECT_EQ(native.verdict().kind, VerdictKind::kLeak);
}

// As sqljs was: a buffer beside the heap is told as part of it once it is full.
TEST(VerdictRivals, WhatMovesIntoAHeapThatTellsIsStillALeak) {
  ToldV8 moved;
  moved.seconds = 180;
  const auto told_later = [](double at) { return at < 160 ? 0.0 : 5.0; };
  moved.live = [=](double at) { return 27 + told_later(at); };
  moved.heap = [=](double at) { return 28.5 + told_later(at); };
  moved.held = [](double at) { return 30 + 0.11 * at; };
  EXPECT_EQ(moved.verdict().kind, VerdictKind::kLeak);
  moved.held = [](double at) { return 30 + 0.11 * std::min(at, 100.0); };
  EXPECT_NE(moved.verdict().kind, VerdictKind::kLeak);
}

// As node_timers was: pages that V8 freed and keeps are beyond its heap, 64 of them at most.
TEST(VerdictRivals, WhatV8FreedAndKeepsIsNoLeak) {
  ToldV8 pooled;
  pooled.seconds = 60;
  pooled.live = [](double) { return 6.3; };
  pooled.heap = [](double at) { return 27 - 0.02 * at; };
  pooled.held = [](double at) { return 31 + std::floor((at + 3) / 5); };  // at collections
  const Verdict verdict = pooled.verdict();
  EXPECT_EQ(verdict.kind, VerdictKind::kUndecided);
  EXPECT_THAT(verdict.evidence, testing::Contains(testing::HasSubstr("so far, room for garbage")));
}

// A worker thread's heap is not told: until it was filled once, nobody knows what is in it.
TEST(VerdictRivals, AHeapBesideTheOneThatTellsMayBeGarbage) {
  ToldV8 beside;
  beside.live = [](double) { return 7.0; };
  beside.heap = [](double) { return 9.0; };
  beside.held = [](double at) { return 16 + 0.18 * at; };
  EXPECT_EQ(beside.verdict().kind, VerdictKind::kLeak);
  beside.untold_heaps = 1;
  EXPECT_EQ(beside.verdict().kind, VerdictKind::kUndecided);
  beside.held = [](double at) { return 16 + 1.5 * at; };
  EXPECT_EQ(beside.verdict().kind, VerdictKind::kLeak);
}

TEST(VerdictRivals, ACacheThatFillsUpInV8IsNoLeak) {
  ToldV8 cache;
  cache.live = [](double at) { return 7 + 5 * (1 - std::exp(-at / 25)); };
  cache.heap = [&](double at) { return cache.live(at) + 2 + sawtooth_of(at); };
  cache.held = [&](double at) { return cache.live(at) + 6 + sawtooth_of(at); };
  EXPECT_NE(cache.verdict().kind, VerdictKind::kLeak);
}

// The figures of a runtime that stopped to tell say nothing of what came after.
TEST(VerdictRivals, AHeapThatWasToldOfLongAgoIsJudgedFromOutside) {
  ToldV8 busy;
  busy.tells_until = 20;
  busy.live = [](double) { return 7.0; };
  busy.heap = [](double) { return 10.0; };
  busy.held = [](double at) { return 14 + 0.6 * at; };
  const Verdict told = busy.verdict(), untold = busy.verdict(/*told=*/false);
  EXPECT_EQ(told.kind, VerdictKind::kLeak);
  EXPECT_EQ(told.kind, untold.kind);
  EXPECT_DOUBLE_EQ(told.confidence, untold.confidence);
}

TEST(VerdictRivals, EightSecondsWithFourHundredIterationsAreEnough) {
  Watched watched;
  watched.seconds = 8;
  watched.interval = 0.25;
  watched.iterations_per_second = 50;
  watched.bytes = [](double at) { return 8 * kMiB + 50 * 20e3 * at; };
  const Verdict verdict = watched.verdict();
  EXPECT_EQ(verdict.kind, VerdictKind::kLeak);
  ASSERT_TRUE(verdict.bytes_per_iteration.has_value());
  EXPECT_NEAR(*verdict.bytes_per_iteration, 20e3, 1e3);
}

TEST(VerdictRivals, TheCurveFollowsThePartAndSurvivesARecording) {
  Watched watched;
  watched.bytes = [](double at) { return 8 * kMiB + 1e5 * at; };
  const std::vector<Sample> samples = watched.samples();
  const Verdict verdict = Judge(samples);
  EXPECT_EQ(verdict.part, "heap");
  ASSERT_GT(verdict.curve.size(), 2u);
  EXPECT_NEAR(verdict.curve.back().bytes, *FigureOf(samples.back(), verdict.part), 2e5);
  EXPECT_LE(verdict.curve.back().low, verdict.curve.back().bytes);
  std::string text = ToJson(RecordingHeader{}) + "\n";
  for (const Sample& sample : samples) text += ToJson(sample) + "\n";
  text += ToJson(verdict) + "\n";
  const Recording back = ParseRecording(text, "recording");
  EXPECT_EQ(ToJson(Judge(back.samples)), ToJson(verdict));
  EXPECT_EQ(ToJson(*back.verdict), ToJson(verdict));
}

TEST(VerdictRivals, WhatIsNoMemberIsAnError) {
  for (const char* members : {"1", "[1]", R"([{"pid":-1}])", R"([{"pid":1,"command":2}])"}) {
    const std::string line = std::string(R"({"seconds":1,"process":{},"members":)") + members + "}";
    EXPECT_ANY_THROW(SampleFromJson(line)) << line;
  }
}

}  // namespace
}  // namespace plimsoll
