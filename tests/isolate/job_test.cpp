#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <plimsoll/isolate.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "support/leftovers.h"

namespace plimsoll {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

Command shell(std::string script) {
  Command command;
  command.argv = {"/bin/sh", "-c", std::move(script)};
  command.standard_output = command.standard_error = Output::kCapture;
  return command;
}

Command python(std::string script) {
  Command command = shell("");
  command.argv = {"/usr/bin/python3", "-S", "-c", std::move(script)};
  return command;
}

TEST(Job, ReportsExitCodeOutputAndFigures) {
  const Residents before;
  const Completed done = Exec(shell("echo out; echo err >&2; exit 7"));
  EXPECT_EQ(done.receipt.ending, Ending::kExited);
  EXPECT_EQ(done.receipt.exit_code, 7);
  EXPECT_EQ(done.receipt.signal, 0);
  EXPECT_EQ(done.output, "out\n");
  EXPECT_EQ(done.error, "err\n");
  EXPECT_GT(done.receipt.wall_ms, 0);
  EXPECT_GT(done.receipt.cpu_ms, 0);
  EXPECT_GT(done.receipt.peak_bytes, 0);
  EXPECT_GT(done.receipt.byte_seconds, 0);
  EXPECT_EQ(done.receipt.processes_killed, 0);
  EXPECT_EQ(Residents(), before);
}

TEST(Job, ASignalThatIsNotOurs) {
  const Completed done = Exec(shell("kill -SEGV $$"));
  EXPECT_EQ(done.receipt.ending, Ending::kSignalled);
  EXPECT_EQ(done.receipt.signal, SIGSEGV);
  EXPECT_EQ(done.receipt.exit_code, 128 + SIGSEGV);
}

TEST(Job, InputEnvironmentAndDirectory) {
  Command command = shell("cat; pwd; echo $PLIMSOLL_TEST-$HOME");
  command.input = std::string(300000, 'x') + "\n";
  command.environment.emplace().emplace("PLIMSOLL_TEST", "yes");
  command.working_directory = "/usr";
  EXPECT_EQ(Exec(command).output, command.input + "/usr\nyes-\n");
}

TEST(Job, AFreshSessionWithCleanDescriptorsAndSignals) {
  ::signal(SIGPIPE, SIG_IGN);
  const Completed done = Exec(python(
      "import os,signal\n"
      "print(os.getsid(0)==os.getpid(), os.getpgrp()==os.getpid(), sorted(os.listdir('/proc/self/fd')),\n"
      " open('/proc/self/status').read().split('SigIgn:')[1].split()[0],\n"
      " open('/proc/self/status').read().split('SigBlk:')[1].split()[0])"));
  ::signal(SIGPIPE, SIG_DFL);
  // 3 is the listing itself; Python ignores SIGPIPE (13) and SIGXFSZ (25) on its own.
  EXPECT_EQ(done.output, "True True ['0', '1', '2', '3'] 0000000001001000 0000000000000000\n") << done.error;
}

TEST(Job, DescriptorsAreGivenOnRequest) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Command command = shell("echo through >&5");
  command.descriptors = {{ends[1], 5}};
  EXPECT_EQ(Exec(command).receipt.exit_code, 0);
  char buffer[16] = {};
  EXPECT_EQ(::read(ends[0], buffer, sizeof(buffer)), 8);
  EXPECT_STREQ(buffer, "through\n");
  ::close(ends[0]);
  ::close(ends[1]);
}

// Swapped numbers: the job's 7 is our 8 and the other way round.
TEST(Job, DescriptorsMayCross) {
  int first[2], second[2];
  ASSERT_EQ(::pipe(first), 0);
  ASSERT_EQ(::pipe(second), 0);
  Command command = shell("");
  command.argv[2] = "echo a >&" + std::to_string(second[1]) + "; echo b >&" + std::to_string(first[1]);
  command.descriptors = {{first[1], second[1]}, {second[1], first[1]}};
  ASSERT_EQ(Exec(command).error, "");
  char buffer[4] = {};
  EXPECT_EQ(::read(first[0], buffer, 3), 2);
  EXPECT_STREQ(buffer, "a\n");
  EXPECT_EQ(::read(second[0], buffer, 3), 2);
  EXPECT_STREQ(buffer, "b\n");
  for (const int end : {first[0], first[1], second[0], second[1]}) ::close(end);
}

TEST(Job, WhoeverElseWaitsDoesNotConfuseIt) {
  const Residents before;
  ::signal(SIGCHLD, SIG_IGN);
  const Completed done = Exec(shell("echo out; exit 7"));
  EXPECT_THROW(Exec([] {
                 Command none = shell("");
                 none.argv = {"/none"};
                 return none;
               }()),
               StartError);
  ::signal(SIGCHLD, SIG_DFL);
  EXPECT_EQ(done.output, "out\n");
  EXPECT_THAT(done.receipt.exit_code, testing::AnyOf(7, -1)) << "-1: kernels before 6.15 do not tell";
  EXPECT_EQ(Residents(), before);
}

// The kernel ties the parent-death signal to a thread, and this one ends while its job runs.
TEST(Job, OutlivesTheThreadThatStartedIt) {
  std::optional<Job> job;
  std::thread([&] { job = Job::Start(shell("sleep 0.3; echo done")); }).join();
  EXPECT_EQ(job->Wait().output, "done\n");
}

TEST(Job, ManyThreadsManyJobs) {
  const Residents before;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&wrong, thread] {
      for (int i = 0; i < 10; ++i) {
        const std::string text = std::to_string(thread * 100 + i);
        if (Exec(shell("echo " + text)).output != text + "\n") ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Residents(), before);
}

TEST(Job, TimesWithoutEndDoNotOverflow) {
  constexpr milliseconds kForever = milliseconds::max();
  Job job = Job::Start(shell("sleep 0.05"), {.wall_time = kForever, .cpu_time = kForever, .grace = kForever});
  const std::optional<Completed> done = job.WaitFor(kForever);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->receipt.ending, Ending::kExited);
}

TEST(Job, OutputGoesWhereErrorsGo) {
  Command command = shell("echo out; echo err >&2");
  command.standard_output = Output::kToError;
  for (const int64_t limit : {int64_t{0}, kMiB}) {
    const Completed done = Exec(command, {.output_bytes = limit});
    EXPECT_EQ(done.output, "");
    EXPECT_EQ(done.error, "out\nerr\n");
  }
}

TEST(Job, WallTimeEndsTheWholeGroup) {
  const Residents before;
  const Completed done = Exec(shell("sleep 100 & sleep 100"), {.wall_time = milliseconds(50)});
  EXPECT_EQ(done.receipt.ending, Ending::kWallTime);
  EXPECT_GT(done.receipt.kill_to_report_ms, 0);
  EXPECT_EQ(Residents(), before);
}

TEST(Job, WhoIgnoresTermIsKilled) {
  const Completed done = Exec(shell("trap '' TERM; while :; do sleep 0.01; done"),
                              {.wall_time = milliseconds(50), .grace = milliseconds(50)});
  EXPECT_EQ(done.receipt.ending, Ending::kWallTime);
  EXPECT_EQ(done.receipt.signal, SIGKILL);
}

TEST(Job, TermComesFirst) {
  const Completed done = Exec(shell("trap 'echo bye; exit 3' TERM; while :; do sleep 0.01; done"),
                              {.wall_time = milliseconds(200), .grace = milliseconds(20000)});
  EXPECT_EQ(done.receipt.ending, Ending::kWallTime);
  EXPECT_EQ(done.receipt.exit_code, 3);
  EXPECT_EQ(done.output, "bye\n");
}

TEST(Job, CpuTimeOfTheWholeGroup) {
  const Completed done = Exec(shell("(while :; do :; done) & (while :; do :; done) & wait"),
                              {.wall_time = milliseconds(60000), .cpu_time = milliseconds(150)});
  EXPECT_EQ(done.receipt.ending, Ending::kCpuTime);
  EXPECT_GE(done.receipt.cpu_ms, 150);
}

TEST(Job, OutputIsCutAtItsLimit) {
  const Completed done = Exec(shell("yes"), {.output_bytes = 100000});
  EXPECT_EQ(done.receipt.ending, Ending::kOutputLimit);
  EXPECT_EQ(done.output.size(), 100000U);
}

TEST(Job, AGigabyteOfOutputPassesUnderALimit) {
  Command command = shell("head -c 1000000000 /dev/zero");
  command.standard_output = Output::kDiscard;
  EXPECT_EQ(Exec(command).receipt.exit_code, 0);
  const Completed done = Exec(shell("head -c 1000000000 /dev/zero"), {.output_bytes = kMiB});
  EXPECT_EQ(done.receipt.ending, Ending::kOutputLimit);
  EXPECT_EQ(done.output.size(), static_cast<size_t>(kMiB));
}

TEST(Job, KillFromAnotherThread) {
  const Residents before;
  {
    Job job = Job::Start(shell("sleep 100"));
    std::thread killer([&] { job.Kill(), job.Kill(); });
    const Completed done = job.Wait();
    killer.join();
    EXPECT_EQ(done.receipt.ending, Ending::kCancelled);
    EXPECT_EQ(done.receipt.signal, SIGKILL);
    EXPECT_THROW(job.Wait(), Error);
  }
  EXPECT_EQ(Residents(), before);
}

TEST(Job, CancelAsksFirst) {
  Job job = Job::Start(shell("trap 'exit 4' TERM; echo up; while :; do sleep 0.01; done"));
  EXPECT_FALSE(job.WaitFor(milliseconds(100)));
  job.Cancel();
  const Completed done = job.Wait();
  EXPECT_EQ(done.receipt.ending, Ending::kCancelled);
  EXPECT_EQ(done.receipt.exit_code, 4);
}

TEST(Job, DroppingItKillsIt) {
  const Residents before;
  { const Job job = Job::Start(shell("sleep 100 & setsid sleep 100 & sleep 100")); }
  EXPECT_EQ(Residents(), before);
}

TEST(Job, WhoDaemonizesIsStillEnded) {
  const Residents before;
  const Completed done =
      Exec(python("import os,time\n"
                  "r,w=os.pipe()\n"
                  "if os.fork()==0:\n"
                  "  os.setsid()\n"
                  "  if os.fork()==0:\n"
                  "    os.write(w,b'x'); os.closerange(0,64); time.sleep(100)\n"
                  "  os._exit(0)\n"
                  "os.read(r,1); os.wait()\n"));
  EXPECT_EQ(done.receipt.exit_code, 0) << done.error;
  EXPECT_EQ(done.receipt.processes_killed, 1);
  EXPECT_EQ(Residents(), before);
}

// As process 1 of a container, or as a subreaper, we inherit the job's orphans.
TEST(Job, OrphansLeaveNoZombies) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Exec(shell("(sleep 100 & sleep 100 &); (setsid sleep 100 &)")).receipt.exit_code, 0);
    EXPECT_LE(::waitpid(-1, nullptr, WNOHANG), 0);
  }
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

TEST(Job, AHundredChildrenAreEnded) {
  const Residents before;
  const Completed done = Exec(shell("for i in $(seq 100); do sleep 100 & done; echo ready"));
  EXPECT_EQ(done.output, "ready\n");
  EXPECT_EQ(done.receipt.processes_killed, 100);
  EXPECT_EQ(Residents(), before);
}

TEST(Job, WhoClosesItsDescriptorsIsStillWaitedFor) {
  const Completed done = Exec(shell("exec 0<&- 1>&- 2>&-; sleep 0.1; exit 5"));
  EXPECT_EQ(done.receipt.exit_code, 5);
}

TEST(Job, CommandsThatCannotBeStarted) {
  const Residents before;
  const auto code = [](const char* program) {
    Command command = shell("");
    command.argv = {program};
    try {
      Exec(command);
    } catch (const StartError& error) {
      EXPECT_THAT(error.what(), HasSubstr(program));
      return start_failure_exit_code(error);
    }
    return 0;
  };
  EXPECT_EQ(code("no-such-command-anywhere"), 127);
  EXPECT_EQ(code("/no/such/command"), 127);
  EXPECT_EQ(code("/etc/passwd"), 126);
  EXPECT_EQ(code("/usr"), 126);
  Command command = shell("true");
  command.working_directory = "/no/such/directory";
  try {
    Exec(command);
    ADD_FAILURE();
  } catch (const StartError& error) {
    EXPECT_EQ(start_failure_exit_code(error), 125);
    EXPECT_THAT(error.what(), HasSubstr("working directory"));
  }
  EXPECT_EQ(Residents(), before);
}

TEST(Job, LimitsThatMakeNoSense) {
  const auto refuse = [](const Limits& limits) {
    try {
      Exec(shell("true"), limits);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    }
  };
  refuse({.memory_bytes = -1});
  refuse({.memory_bytes = 4096});
  refuse({.memory_bytes = int64_t{1} << 60});
  refuse({.wall_time = milliseconds(-1)});
  refuse({.cpu_time = milliseconds(-1)});
  refuse({.processes = -1});
  refuse({.output_bytes = -1});
  refuse({.grace = milliseconds(-1)});
}

TEST(Job, CommandsThatMakeNoSense) {
  Command command = shell("true");
  command.argv.clear();
  EXPECT_THROW(Exec(command), Error);
  command.argv = {std::string("a\0b", 3)};
  EXPECT_THROW(Exec(command), Error);
  command = shell("true");
  command.descriptors = {{999, 3}};
  EXPECT_THROW(Exec(command), Error);
  command.descriptors = {{0, 3}, {0, 3}};
  EXPECT_THROW(Exec(command), Error);
  command.descriptors = {{0, -1}};
  EXPECT_THROW(Exec(command), Error);
  command = shell("true");
  command.environment.emplace().emplace("A=B", "c");
  EXPECT_THROW(Exec(command), Error);
}

}  // namespace
}  // namespace plimsoll
