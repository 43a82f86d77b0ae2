// In cross builds alone: tests that ask for what qemu-user has not are skipped, each with its reason.
#include <fnmatch.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>

namespace plimsoll {
namespace {

struct Missing {
  const char* tests;  // a pattern as the shell's: program:suite.name
  const char* reason;
};

constexpr const char* kNoJobs = "qemu-user refuses the clone(2) and clone3(2) by which jobs are started";
constexpr const char* kNoPrograms = "under qemu-user exec(2) of a program for aarch64 fails";
constexpr const char* kNoFork =
    "qemu-user 7.2 ends with an assertion of its own in a fork of a process with threads";

constexpr const char* kNoStat =
    "under qemu-user /proc/self/stat is the emulator's, whose start time is not the kernel's";
constexpr const char* kNoTimes = "seconds of an emulator say nothing";

const Missing kMissing[] = {
    {"test_isolate:MemoryLimit.*", kNoJobs},
    {"test_isolate:Call.[!R]*", kNoJobs},  // all but the refusals
    {"test_isolate:Call.Reports*", kNoJobs},
    {"test_isolate:Job.*", kNoJobs},
    {"test_isolate:Pool*", kNoJobs},
    {"test_isolate:Unheld.*", kNoJobs},
    {"test_isolate:SandboxedJob.*", kNoJobs},
    {"test_isolate:Attempt/Escape*", kNoJobs},
    {"test_observe:*LiveTest.*", kNoPrograms},
    {"test_observe:Kinds/AccountKindTest.*", kNoPrograms},
    {"test_observe:ObserverTest.CheapSamplesFollowTheKernelsFigure", kNoPrograms},
    {"test_observe:ToldDirectory.IsReadWithTheProcess", kNoStat},
    {"test_observe:ToldDirectory.SurvivesARecording", kNoStat},
    {"test_faults:CheckpointFaults.Killed*", kNoPrograms},
    {"test_kernels:Team.AForkedChildGoesOn", kNoFork},
    {"test_plan:*Large.IsPlacedInASecond*", kNoTimes},
};

class SkipMissing : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& info) override {
    const std::string name =
        std::string(program_invocation_short_name) + ":" + info.test_suite_name() + "." + info.name();
    for (const auto& [tests, reason] : kMissing)
      if (::fnmatch(tests, name.c_str(), 0) == 0) GTEST_SKIP() << reason;
  }
};

[[maybe_unused]] const bool registered = [] {
  testing::UnitTest::GetInstance()->listeners().Append(std::make_unique<SkipMissing>().release());
  return true;
}();

}  // namespace
}  // namespace plimsoll
