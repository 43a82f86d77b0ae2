// One request to a process of its own.
#include <signal.h>

#include <thread>

#include "isolate/pool_support.h"

namespace plimsoll::pool_test {
namespace {

Called call(const std::string& request, std::vector<std::string> arguments = {}, Limits limits = {},
            CallOptions options = {}) {
  Command command = echo_options(1, std::move(arguments)).worker;
  command.standard_output = Output::kCapture;
  Call running = Call::Start(command, limits, request, options);
  for (;;)
    if (std::optional<Called> called = running.WaitFor(milliseconds(50))) return std::move(*called);
}

TEST(Call, AnswersAndReportsTheWholeProcess) {
  const Called called = call("echo hello");
  EXPECT_EQ(called.outcome.kind, Kind::kAnswer) << called.outcome.message;
  EXPECT_EQ(called.outcome.answer, "hello");
  EXPECT_EQ(called.outcome.receipt.ending, Ending::kExited);
  EXPECT_EQ(called.outcome.receipt.exit_code, 0);
  EXPECT_GT(called.outcome.receipt.peak_bytes, 0);
}

TEST(Call, CarriesLongFrames) {
  const std::string text(8 << 20, 'z');
  EXPECT_EQ(call("echo " + text).outcome.answer, text);
}

TEST(Call, KeepsOutputUpToALimit) {
  const Called little = call("echo x", {"--say", "warm"});
  EXPECT_EQ(little.error, "warm\n");
  EXPECT_FALSE(little.truncated);
  const Called much = call("echo x", {"--say", std::string(1000, 'w')}, {}, {1 << 20, 10});
  EXPECT_EQ(much.error, "wwwwwwwwww");
  EXPECT_TRUE(much.truncated);
  EXPECT_EQ(much.outcome.answer, "x");
}

TEST(Call, TellsHowItEnded) {
  Limits limits;
  EXPECT_EQ(call("exit 3").outcome.kind, Kind::kWorkerDied);
  EXPECT_NE(call("exit 3").outcome.message.find("code 3"), std::string::npos);
  EXPECT_EQ(call("signal 9").outcome.kind, Kind::kWorkerDied);
  EXPECT_EQ(call("close").outcome.kind, Kind::kWorkerDied);
  EXPECT_EQ(call("garbage").outcome.kind, Kind::kTooLarge);
  EXPECT_EQ(call("long 100", {}, {}, {99, 0}).outcome.kind, Kind::kTooLarge);
  EXPECT_EQ(call("echo x", {"--refuse", "not today"}).outcome.kind, Kind::kStartFailed);
  EXPECT_EQ(call("echo x", {"--exit", "4"}).outcome.kind, Kind::kWorkerDied);
  limits.wall_time = milliseconds(200);
  EXPECT_EQ(call("sleep 100000", {}, limits).outcome.kind, Kind::kTimeout);
  EXPECT_EQ(call("mute", {}, limits).outcome.kind, Kind::kTimeout);
}

TEST(Call, ReportsTheMemoryLimit) {
  Limits limits;
  limits.memory_bytes = 64 << 20;
  const Called called = call("touch 200000000", {}, limits);
  if (!has_cgroup(called.outcome.receipt)) GTEST_SKIP() << "no memory cgroup here";
  EXPECT_EQ(called.outcome.kind, Kind::kMemoryLimit) << called.outcome.message;
  EXPECT_TRUE(called.outcome.receipt.limit_hit);
}

TEST(Call, CanBeKilledAndLeavesNothing) {
  const size_t descriptors = descriptors_after_first_job();
  {
    Call running = Call::Start(echo_options(1).worker, {}, "sleep 100000");
    EXPECT_FALSE(running.WaitFor(milliseconds(20)));
    std::thread killer([&] { running.Kill(); });
    std::optional<Called> called;
    while (!called) called = running.WaitFor(milliseconds(50));
    killer.join();
    EXPECT_EQ(called->outcome.kind, Kind::kCancelled);
    Call dropped = Call::Start(echo_options(1).worker, {}, "sleep 100000");
  }
  EXPECT_EQ(open_descriptors(), descriptors);
}

TEST(Call, RefusesACommandThatIsNotThere) {
  Command command;
  command.argv = {"/no/such/command"};
  EXPECT_EQ(code_of([&] { Call::Start(command, {}, "x"); }), ErrorCode::kIo);
}

}  // namespace
}  // namespace plimsoll::pool_test
