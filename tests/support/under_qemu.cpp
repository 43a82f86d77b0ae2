// In cross builds alone: tests that ask for what qemu-user has not are skipped, each with its reason.
#include <fnmatch.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace plimsoll {
namespace {

struct Missing {
  const char* tests;  // a pattern as the shell's: suite.name
  const char* reason;
};

constexpr const char* kNoClone3 = "qemu-user has no clone3(2), by which jobs are started";

const Missing kMissing[] = {
    {"Pool*.*", kNoClone3},
};

class SkipMissing : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& info) override {
    const std::string name = std::string(info.test_suite_name()) + "." + info.name();
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
