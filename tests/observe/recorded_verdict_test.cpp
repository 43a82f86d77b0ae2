// The verdict on recordings of labelled programs (tests/scenarios), thinned to three samples a second.
#include <gtest/gtest.h>
#include <plimsoll/observe.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "support/places.h"

namespace plimsoll {
namespace {

Recording recorded(const std::string& family, const std::string& folder = "scenarios") {
  const std::string path = source_dir() + "/tests/" + folder + "/recordings/" + family + ".jsonl";
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return ParseRecording(text.str(), path);
}

struct Label {
  const char* family;
  VerdictKind kind;
  Cause cause;
};

class RecordedVerdict : public testing::TestWithParam<Label> {};

TEST_P(RecordedVerdict, IsWhatTheLabelSays) {
  const Recording recording = recorded(GetParam().family);
  const Verdict verdict = Judge(recording.samples);
  EXPECT_STREQ(verdict_name(verdict.kind), verdict_name(GetParam().kind));
  EXPECT_STREQ(cause_name(verdict.cause), cause_name(GetParam().cause));
  EXPECT_FALSE(verdict.evidence.empty());
}

INSTANTIATE_TEST_SUITE_P(Families, RecordedVerdict,
                         testing::Values(Label{"linear_leak", VerdictKind::kLeak, Cause::kLiveHeap},
                                         Label{"anonymous_maps", VerdictKind::kLeak, Cause::kAnonymousMaps},
                                         Label{"threads_blocked", VerdictKind::kLeak, Cause::kThreadStacks},
                                         Label{"sockets", VerdictKind::kLeak, Cause::kDescriptors},
                                         Label{"cow_after_fork", VerdictKind::kPlateau, Cause::kCopyOnWrite},
                                         Label{"arena_retention", VerdictKind::kPlateau,
                                               Cause::kAllocatorRetention},
                                         Label{"page_cache_read", VerdictKind::kCache, Cause::kPageCache}),
                         [](const auto& one) { return std::string(one.param.family); });

// Real programs, two minutes each: what was judged wrongly when the corpus was first looked at.
class RecordedProgram : public testing::TestWithParam<const char*> {};

TEST_P(RecordedProgram, IsALeakIfItsNameSaysSo) {
  const std::string name = GetParam();
  const Verdict verdict = Judge(recorded(name, "corpus").samples);
  EXPECT_EQ(verdict.kind == VerdictKind::kLeak, name.find("-leaks-") != std::string::npos)
      << verdict_name(verdict.kind) << " " << verdict.confidence;
}

INSTANTIATE_TEST_SUITE_P(Corpus, RecordedProgram,
                         testing::Values("java-steady-2", "pypy-steady-1", "sbcl-steady-1", "redis-steady-2",
                                         "gunicorn-steady-1", "lodash-leaks-1", "node_churn-leaks-1",
                                         "git-leaks-1", "bash-leaks-1", "erlang-leaks-1", "express-leaks-1",
                                         "haskell-leaks-1", "webrick-steady-1", "java_cache-steady-2",
                                         "netty-leaks-2", "netty-steady-2"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(RecordedVerdicts, TheSizeOfARecordedLeakIsWithinATenth) {
  const Recording recording = recorded("linear_leak");
  const double truth = std::strtod(recording.header.facts.at("truth_bytes_per_iteration").c_str(), nullptr);
  const Verdict verdict = Judge(recording.samples);
  EXPECT_NEAR(verdict.bytes_per_iteration.value_or(0), truth, 0.1 * truth);
}

TEST(RecordedVerdicts, CollectedGarbageIsFlatOrAPlateau) {
  const VerdictKind kind = Judge(recorded("sawtooth").samples).kind;
  EXPECT_TRUE(kind == VerdictKind::kFlat || kind == VerdictKind::kPlateau) << verdict_name(kind);
}

// A watch asks again and again: before the minimum it must not guess, and a leak once found stays found.
TEST(RecordedVerdicts, ALeakIsUndecidedFirstAndThenStaysALeak) {
  const Recording recording = recorded("anonymous_maps");
  const std::span<const Sample> samples = recording.samples;
  bool found = false;
  for (size_t count = 1; count <= samples.size(); ++count) {
    const VerdictKind kind = Judge(samples.first(count)).kind;
    if (samples[count - 1].seconds < 5) {
      EXPECT_EQ(kind, VerdictKind::kUndecided);
    }
    if (found) {
      EXPECT_EQ(kind, VerdictKind::kLeak) << count;
    }
    found |= kind == VerdictKind::kLeak;
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace plimsoll
