// The verdict on made-up samples whose truth is known. On recorded programs: tests/scenarios.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <plimsoll/observe.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <regex>
#include <string>
#include <vector>

namespace plimsoll {
namespace {

constexpr double kMiB = 1024 * 1024;

// Twenty seconds at ten samples a second, 400 iterations a second, 8 MiB of heap with noise, unless told
// otherwise.
struct Made {
  double seconds = 20, hertz = 10, iterations_per_second = 400, noise_bytes = 100e3;
  bool iterations = true;
  std::function<double(double)> heap = [](double) {
    return 0.0;
  };  // bytes above 8 MiB, of the share of the time
  std::function<void(double, Sample&)> also = [](double, Sample&) {};

  std::vector<Sample> samples() const {
    std::mt19937 random(7);
    std::normal_distribution<double> noise(0, noise_bytes);
    std::vector<Sample> all;
    const auto count = static_cast<int>(seconds * hertz);
    for (int i = 0; i < count; ++i) {
      const double share = static_cast<double>(i) / count;
      Sample sample;
      sample.seconds = i / hertz;
      if (iterations) sample.iteration = static_cast<int64_t>(sample.seconds * iterations_per_second);
      sample.process.heap_bytes = static_cast<int64_t>(8 * kMiB + heap(share) + std::abs(noise(random)));
      sample.process.shared_file_bytes = static_cast<int64_t>(3 * kMiB);
      sample.process.threads = sample.process.processes = 1;
      sample.process.descriptors = 5;
      also(share, sample);
      all.push_back(sample);
    }
    return all;
  }
  Verdict verdict() const { return Judge(samples()); }
};

const char* name(const Verdict& verdict) {
  return verdict_name(verdict.kind);
}

TEST(Verdict, SteadyMemoryIsFlat) {
  EXPECT_STREQ(name(Made{}.verdict()), "flat");
}

TEST(Verdict, AKilobyteAnIterationIsALeakOfThatSize) {
  Made made;
  made.heap = [](double share) { return share * 8000 * 1024; };
  const Verdict verdict = made.verdict();
  EXPECT_STREQ(name(verdict), "leak");
  EXPECT_EQ(verdict.cause, Cause::kLiveHeap);
  ASSERT_TRUE(verdict.bytes_per_iteration.has_value());
  EXPECT_NEAR(*verdict.bytes_per_iteration, 1024, 50);
  EXPECT_NEAR(verdict.bytes_per_second, 1024 * 400, 20000);
  EXPECT_LE(verdict.low, 1024);
  EXPECT_GE(verdict.high, 1024);
  EXPECT_GT(verdict.confidence, 0.7);
  ASSERT_FALSE(verdict.evidence.empty());
  EXPECT_THAT(verdict.evidence.front(), testing::HasSubstr("per iteration"));
}

// The sentence's own figures, in the units that these tests give it.
struct Told {
  double rise_mib = 0, seconds = 0, iterations = 0, rate_kib = 0;
  bool mostly = false;
};

Told told(const std::string& sentence) {
  static const std::regex pattern(
      R"(grew by ([0-9.]+) MiB in ([0-9.]+) s \(([0-9]+) iterations\), (for the most part )?([0-9.]+) KiB per it)");
  std::smatch found;
  if (!std::regex_search(sentence, found, pattern)) return {};
  return {std::stod(found[1]), std::stod(found[2]), std::stod(found[3]), std::stod(found[5]),
          found[4].matched};
}

TEST(Verdict, RisePeriodAndRateAgree) {
  for (const int count : {15, 16, 20, 23, 60, 200, 500}) {
    for (const int jump_at : {-1, 2, count / 2}) {
      std::vector<Sample> samples;
      for (int i = 0; i < count; ++i) {
        Sample sample;
        sample.seconds = i;
        sample.iteration = 100 * i;
        sample.process.heap_bytes =
            5'000'000 + int64_t{20'000} * sample.iteration + (i < jump_at ? 0 : 3'000'000);
        samples.push_back(sample);
      }
      const Verdict verdict = Judge(samples);
      ASSERT_STREQ(name(verdict), "leak") << count;
      const Told one = told(verdict.evidence.front());
      ASSERT_GT(one.iterations, 0) << verdict.evidence.front();
      EXPECT_NEAR(one.seconds * 100, one.iterations, 6) << verdict.evidence.front();
      EXPECT_LT(one.seconds, count) << verdict.evidence.front();
      const double mean_kib = one.rise_mib * 1024 / one.iterations;
      // Where a jump is in the rise but not in the rate, the sentence does not give one for the other.
      EXPECT_EQ(one.mostly, std::abs(mean_kib / one.rate_kib - 1) > 0.026) << verdict.evidence.front();
      EXPECT_TRUE(jump_at >= 0 || !one.mostly) << verdict.evidence.front();
    }
  }
}

TEST(Verdict, WithoutIterationsTheRateIsPerSecond) {
  Made made;
  made.iterations = false;
  made.heap = [](double share) { return share * 20 * kMiB; };
  const Verdict verdict = made.verdict();
  EXPECT_STREQ(name(verdict), "leak");
  EXPECT_FALSE(verdict.bytes_per_iteration.has_value());
  EXPECT_NEAR(verdict.bytes_per_second, kMiB, 0.05 * kMiB);
  EXPECT_NEAR((verdict.low + verdict.high) / 2, verdict.bytes_per_second, 0.02 * kMiB);
}

TEST(Verdict, ALeakIsMeasuredByIterationsWhenTheLoadVaries) {
  Made made;
  const auto done = [](double share) { return share - 0.09 * std::sin(3 * 6.283 * share) / 6.283 * 3; };
  made.heap = [&](double share) { return done(share) * 16 * kMiB; };
  made.also = [&](double share, Sample& sample) {
    sample.iteration = static_cast<int64_t>(done(share) * 8192);
  };
  const Verdict verdict = made.verdict();
  EXPECT_STREQ(name(verdict), "leak");
  EXPECT_NEAR(verdict.bytes_per_iteration.value_or(0), 2048, 60);
}

TEST(Verdict, CollectedGarbageIsNoLeakWhereverTheWatchStops) {
  for (const double cycles : {5.3, 7.9, 12.5, 20.1}) {
    Made made;
    made.heap = [=](double share) { return 40 * kMiB * std::fmod(share * cycles, 1.0); };
    EXPECT_THAT(name(made.verdict()), testing::AnyOf(testing::StrEq("flat"), testing::StrEq("plateau")))
        << cycles;
  }
}

TEST(Verdict, ALeakBeneathCollectedGarbageIsFoundWithItsSize) {
  Made made;
  made.heap = [](double share) { return share * 12 * kMiB + 30 * kMiB * std::fmod(share * 11.4, 1.0); };
  const Verdict verdict = made.verdict();
  EXPECT_STREQ(name(verdict), "leak");
  EXPECT_NEAR(verdict.bytes_per_iteration.value_or(0), 12 * kMiB / 8000, 160);
}

TEST(Verdict, ARampThatFallsAgainIsNoLeak) {
  Made made;
  made.heap = [](double share) { return 60 * kMiB * std::max(0.0, 1 - std::abs(share - 0.5) / 0.4); };
  EXPECT_NE(made.verdict().kind, VerdictKind::kLeak);
}

TEST(Verdict, OneBigRequestIsFlat) {
  Made made;
  made.heap = [](double share) { return share > 0.8 && share < 0.84 ? 300 * kMiB : 0; };
  EXPECT_STREQ(name(made.verdict()), "flat");
}

TEST(Verdict, GrowthThatEndedIsAPlateau) {
  Made made;
  made.heap = [](double share) { return 30 * kMiB * std::min(1.0, share / 0.45); };
  const Verdict verdict = made.verdict();
  EXPECT_STREQ(name(verdict), "plateau");
  EXPECT_EQ(verdict.cause, Cause::kLiveHeap);
}

TEST(Verdict, StepsThatEndedAreAPlateau) {
  Made made;
  made.heap = [](double share) { return 9 * kMiB * ((share > 0.1) + (share > 0.3) + (share > 0.5)); };
  EXPECT_STREQ(name(made.verdict()), "plateau");
}

TEST(Verdict, AnExponentialApproachIsWarmingUpAndThenAPlateau) {
  Made made;
  made.noise_bytes = 20e3;
  made.heap = [](double share) { return 100 * kMiB * (1 - std::exp(-share / 0.25)); };
  EXPECT_STREQ(name(made.verdict()), "warming up");
  made.heap = [](double share) { return 100 * kMiB * (1 - std::exp(-share / 0.05)); };
  EXPECT_STREQ(name(made.verdict()), "plateau");
}

TEST(Verdict, ABurstThatStaysIsCalledRetentionAndSaidToBeInference) {
  Made made;
  made.heap = [](double share) { return share > 0.3 ? 25 * kMiB : 0; };
  const Verdict verdict = made.verdict();
  EXPECT_STREQ(name(verdict), "plateau");
  EXPECT_EQ(verdict.cause, Cause::kAllocatorRetention);
  EXPECT_THAT(verdict.evidence, testing::Contains(testing::HasSubstr("inference")));
}

TEST(Verdict, TheCauseIsThePartThatGrows) {
  struct Case {
    Cause cause;
    int64_t ProcessView::*member;
  };
  for (const Case& one : {Case{Cause::kAnonymousMaps, &ProcessView::anonymous_bytes},
                          Case{Cause::kLiveHeap, &ProcessView::allocator_bytes},
                          Case{Cause::kThreadStacks, &ProcessView::stack_bytes},
                          Case{Cause::kMappedFiles, &ProcessView::shared_file_bytes},
                          Case{Cause::kSharedMemory, &ProcessView::shared_memory_bytes}}) {
    Made made;
    made.also = [&](double share, Sample& sample) {
      sample.process.*one.member += static_cast<int64_t>(share * 16 * kMiB);
    };
    const Verdict verdict = made.verdict();
    EXPECT_STREQ(name(verdict), "leak");
    EXPECT_STREQ(cause_name(verdict.cause), cause_name(one.cause));
  }
}

TEST(Verdict, DescriptorsLeakWithoutBytes) {
  Made made;
  made.also = [](double share, Sample& sample) {
    sample.process.descriptors += static_cast<int64_t>(share * 300);
  };
  const Verdict verdict = made.verdict();
  EXPECT_STREQ(name(verdict), "leak");
  EXPECT_EQ(verdict.cause, Cause::kDescriptors);
}

TEST(Verdict, ProcessesThatDoNotEnd) {
  Made made;
  made.heap = [](double share) { return share * 20 * kMiB; };
  made.also = [](double share, Sample& sample) {
    sample.process.processes += static_cast<int64_t>(share * 100);
    sample.process.threads += static_cast<int64_t>(share * 100);
  };
  const Verdict verdict = made.verdict();
  EXPECT_STREQ(name(verdict), "leak");
  EXPECT_EQ(verdict.cause, Cause::kProcesses);
}

Made contained(int version, int64_t ContainerView::*member) {
  Made made;
  made.also = [=](double share, Sample& sample) {
    ContainerView view;
    view.version = version;
    view.*member = static_cast<int64_t>(share * 50 * kMiB);
    if (member == &ContainerView::slab_reclaimable_bytes) view.slab_bytes = view.*member;
    sample.container = view;
  };
  return made;
}

TEST(Verdict, TheContainerAloneGrows) {
  const Verdict cache = contained(1, &ContainerView::page_cache_bytes).verdict();
  EXPECT_STREQ(name(cache), "cache");
  EXPECT_EQ(cache.cause, Cause::kPageCache);
  const Verdict names = contained(2, &ContainerView::slab_reclaimable_bytes).verdict();
  EXPECT_STREQ(name(names), "cache");
  EXPECT_EQ(names.cause, Cause::kSlab);
  const Verdict objects = contained(2, &ContainerView::slab_bytes).verdict();
  EXPECT_STREQ(name(objects), "leak");
  EXPECT_EQ(objects.cause, Cause::kSlab);
  const Verdict files = contained(2, &ContainerView::shared_memory_bytes).verdict();
  EXPECT_STREQ(name(files), "leak");
  EXPECT_EQ(files.cause, Cause::kSharedMemory);
}

TEST(Verdict, TheKernelsBooksOfThePageCacheAreNoLeak) {
  Made made;
  made.also = [](double share, Sample& sample) {
    ContainerView view;
    view.version = 1;
    view.page_cache_bytes = static_cast<int64_t>(share * 60 * kMiB);
    view.slab_bytes = static_cast<int64_t>(share * 2 * kMiB);
    sample.container = view;
  };
  const Verdict verdict = made.verdict();
  EXPECT_STREQ(name(verdict), "cache");
  EXPECT_EQ(verdict.cause, Cause::kPageCache);
}

Made kernel_memory_and_names(double names_bytes) {
  Made made;
  made.also = [=](double share, Sample& sample) {
    ContainerView view;
    view.version = 1;
    view.slab_bytes = static_cast<int64_t>(share * 2 * kMiB);
    view.unused_names = 300000 + static_cast<int64_t>(share * names_bytes / 192);
    sample.container = view;
  };
  return made;
}

// Version 1 does not tell, and the rest of the machine may forget as many names as this program makes.
TEST(Verdict, ALittleKernelMemoryMayBeNamesToo) {
  const auto grown = [](int version, bool counted) {
    Made made;
    made.seconds = 180;
    made.also = [=](double share, Sample& sample) {
      ContainerView view;
      view.version = version;
      view.slab_bytes = static_cast<int64_t>(share * 0.9 * kMiB);
      view.unused_names = 300000 + static_cast<int64_t>(1000 * std::sin(9 * share));
      sample.container = view;
      if (counted) sample.process.descriptors = 5 + static_cast<int64_t>(share * 400);
    };
    return std::string(name(made.verdict()));
  };
  EXPECT_EQ(grown(1, false), "undecided");
  EXPECT_EQ(grown(1, true), "leak");
  EXPECT_EQ(grown(2, false), "leak");
}

TEST(Verdict, NamesThatTheKernelCanForgetAreNoLeak) {
  const Verdict deleted_files = kernel_memory_and_names(1.9 * kMiB).verdict();
  EXPECT_STREQ(name(deleted_files), "cache");
  EXPECT_EQ(deleted_files.cause, Cause::kSlab);
  const Verdict busy_machine = kernel_memory_and_names(30 * kMiB).verdict();
  EXPECT_STREQ(name(busy_machine), "undecided");
  const Verdict objects = kernel_memory_and_names(0.5 * kMiB).verdict();
  EXPECT_STREQ(name(objects), "leak");
  EXPECT_EQ(objects.cause, Cause::kSlab);
}

TEST(Verdict, TheLastSampleOfAProcessThatEndsDoesNotHideItsLeak) {
  Made made;
  made.heap = [](double share) { return share * 4 * kMiB; };
  made.also = [](double, Sample& sample) { sample.process.mappings = 40; };
  std::vector<Sample> samples = made.samples();
  samples.back().process.heap_bytes = static_cast<int64_t>(kMiB);
  samples.back().process.mappings = 10;  // the kernel was taking its memory apart
  EXPECT_STREQ(name(Judge(samples)), "leak");
}

TEST(Verdict, CopiesAfterAForkAreBoundedByWhatIsShared) {
  Made made;
  made.also = [](double share, Sample& sample) {
    const double copied = 30 * kMiB * std::clamp((share - 0.2) / 0.3, 0.0, 1.0);
    sample.process.processes = share > 0.15 ? 2 : 1;
    sample.process.anonymous_bytes = static_cast<int64_t>(30 * kMiB + copied);
    sample.process.fork_shared_bytes = share > 0.15 ? static_cast<int64_t>(30 * kMiB - copied) : 0;
  };
  const Verdict verdict = made.verdict();
  EXPECT_STREQ(name(verdict), "plateau");
  EXPECT_EQ(verdict.cause, Cause::kCopyOnWrite);
}

TEST(Verdict, TooFewSamplesAreUndecidedAndSayHowManySecondsAreMissing) {
  EXPECT_STREQ(name(Judge({})), "undecided");
  Made made;
  made.seconds = 2;
  made.heap = [](double share) { return share * 50 * kMiB; };
  const Verdict verdict = made.verdict();
  EXPECT_STREQ(name(verdict), "undecided");
  EXPECT_NEAR(verdict.seconds_needed, 3, 0.5);
  EXPECT_FALSE(verdict.evidence.empty());
  made.seconds = 8;
  made.hertz = 1;
  made.iterations = false;
  const Verdict few = made.verdict();
  EXPECT_STREQ(name(few), "undecided");
  EXPECT_NEAR(few.seconds_needed, 4, 0.1);
  ASSERT_FALSE(few.evidence.empty());
  EXPECT_THAT(few.evidence.front(), testing::HasSubstr("8 samples over 7.0 s"));
  EXPECT_THAT(few.evidence.front(), testing::HasSubstr("needs 12 samples"));
}

TEST(Verdict, FewLongWavesAreNotCalledALeak) {
  Made made;
  made.heap = [](double share) { return 40 * kMiB * (1 - std::cos(1.5 * 6.283 * share)); };
  const Verdict verdict = made.verdict();
  EXPECT_NE(verdict.kind, VerdictKind::kLeak);
  if (verdict.kind == VerdictKind::kUndecided) {
    EXPECT_GT(verdict.seconds_needed, 0);
  }
}

TEST(Verdict, GapsClockJumpsAndNonsenseAreLeftOut) {
  Made made;
  made.heap = [](double share) { return share * 16 * kMiB; };
  std::vector<Sample> samples = made.samples();
  for (size_t i = 60; i < 80; ++i) samples[i].gap = true, samples[i].process = {};
  samples[100].seconds = -1e9;
  samples[101].seconds = std::numeric_limits<double>::quiet_NaN();
  samples[102].seconds = std::numeric_limits<double>::infinity();
  samples[103].process.heap_bytes = -5;
  const Verdict verdict = Judge(samples);
  EXPECT_STREQ(name(verdict), "leak");
  EXPECT_NEAR(verdict.bytes_per_iteration.value_or(0), 16 * kMiB / 8000, 100);
}

TEST(Verdict, ACounterThatStartsAgainGoesOn) {
  Made made;
  made.heap = [](double share) { return share * 16 * kMiB; };
  std::vector<Sample> samples = made.samples();
  const int64_t before = samples[90].iteration - 3;
  for (size_t i = 90; i < samples.size(); ++i) samples[i].iteration -= before;
  const Verdict verdict = Judge(samples);
  EXPECT_STREQ(name(verdict), "leak");
  EXPECT_NEAR(verdict.bytes_per_iteration.value_or(0), 16 * kMiB / 8000, 120);
}

TEST(Verdict, AProcessThatWasStartedAgainIsJudgedFromThereOn) {
  Made made;
  made.heap = [](double share) { return share < 0.4 ? share * 400 * kMiB : 0; };
  std::vector<Sample> samples = made.samples();
  for (size_t i = 80; i < 85; ++i) samples[i].gap = true;
  EXPECT_STREQ(name(Judge(samples)), "flat");
}

TEST(Verdict, TheSameSamplesGiveTheSameVerdict) {
  Made made;
  made.heap = [](double share) { return share * 16 * kMiB; };
  EXPECT_EQ(ToJson(made.verdict()), ToJson(made.verdict()));
}

TEST(Verdict, ExtremeFiguresAreSurvived) {
  Made made;
  made.also = [](double share, Sample& sample) {
    sample.process.heap_bytes = share > 0.5 ? std::numeric_limits<int64_t>::max() / 4 : 0;
    sample.iteration = share > 0.7 ? std::numeric_limits<int64_t>::max() : 1;
  };
  const Verdict verdict = made.verdict();
  EXPECT_TRUE(std::isfinite(verdict.bytes_per_second));
  EXPECT_TRUE(std::isfinite(verdict.low) && std::isfinite(verdict.high));
}

TEST(Verdict, AnHourAtOneSampleASecondIsJudgedToo) {
  Made made;
  made.seconds = 3600;
  made.hertz = 1;
  made.iterations_per_second = 3;
  made.heap = [](double share) { return share * 11 * kMiB; };
  const Verdict verdict = made.verdict();
  EXPECT_STREQ(name(verdict), "leak");
  EXPECT_NEAR(verdict.bytes_per_iteration.value_or(0), 11 * kMiB / 10800, 60);
}

}  // namespace
}  // namespace plimsoll
