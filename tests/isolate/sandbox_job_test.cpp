// Ordinary jobs in a sandbox, through Job: they work, they end, they leave nothing.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <plimsoll/isolate.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "isolate/sandbox_world.h"
#include "plimsoll/error.h"
#include "support/leftovers.h"
#include "support/places.h"

namespace plimsoll::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Command sandboxed(std::vector<std::string> argv) {
  Command command;
  command.argv = std::move(argv);
  command.standard_output = command.standard_error = Output::kCapture;
  command.sandbox.level = SandboxLevel::kBestEffort;
  return command;
}
Command shell(std::string script) {
  return sandboxed({"sh", "-c", std::move(script)});
}

bool has_pid_namespace() {
  return (sandbox::kernel_support().namespaces & CLONE_NEWPID) != 0;
}

TEST(SandboxedJob, AShellScript) {
  const Residents before;
  const Completed done = Exec(shell("echo out; echo err >&2; echo x | tr x y; ls / >/dev/null; exit 7"));
  EXPECT_EQ(done.output, "out\ny\n");
  EXPECT_EQ(done.error, "err\n");
  EXPECT_EQ(done.receipt.exit_code, 7);
  EXPECT_EQ(done.receipt.ending, Ending::kExited);
  EXPECT_THAT(done.receipt.sandbox, Contains("no_new_privs"));
  EXPECT_GT(done.receipt.cpu_ms, 0);
  EXPECT_GT(done.receipt.peak_bytes, 0);
  EXPECT_EQ(Residents(), before);
}

TEST(SandboxedJob, WritesToItsTemporaryDirectoryWhichIsGoneAfterwards) {
  const std::string name = "plimsoll-gone-" + std::to_string(::getpid());  // /tmp here may hold any other
  const Completed done =
      Exec(shell("echo $TMPDIR; cd $TMPDIR; a=" + name +
                 "; mkdir -p $a/b; seq 100000 >$a/b/file; chmod 0 $a; wc -l <$a/b/file || ls -d $a"));
  EXPECT_EQ(done.receipt.exit_code, 0) << done.error;
  const std::string directory = done.output.substr(0, done.output.find('\n'));
  ASSERT_FALSE(directory.empty());
  EXPECT_NE(access((directory + "/" + name).c_str(), F_OK), 0);
}

TEST(SandboxedJob, PythonWithNumpy) {
  Command outside = sandboxed({"/usr/bin/python3", "-c", "import numpy; numpy.arange(1)"});
  outside.sandbox = {};
  if (Exec(outside).receipt.exit_code != 0) GTEST_SKIP() << "no numpy here";
  const Completed done = Exec(sandboxed(
      {"/usr/bin/python3", "-c",
       "import numpy, tempfile, threading, subprocess\n"
       "with tempfile.NamedTemporaryFile() as f: numpy.save(f, numpy.arange(10)); f.seek(0); a = "
       "numpy.load(f)\n"
       "t = threading.Thread(target=lambda: None); t.start(); t.join()\n"
       "print(a.sum(), (numpy.ones((64, 64)) @ numpy.ones((64, 64))).sum(),\n"
       "      subprocess.run(['/bin/echo', 'child'], capture_output=True, text=True).stdout.strip())"}));
  EXPECT_EQ(done.output, "45 262144.0 child\n") << done.error;
}

TEST(SandboxedJob, PythonWithProcessesOfItsOwn) {
  const Completed done =
      Exec(sandboxed({"/usr/bin/python3", "-c",
                      "import multiprocessing as m\n"
                      "with m.get_context('fork').Pool(2) as p: print(p.map(abs, [-1, 2]))\n"
                      "print('done')"}));
  // Semaphores need a /dev/shm, which only a mount namespace gives.
  if (!has_pid_namespace()) GTEST_SKIP() << "no mount namespace here";
  EXPECT_EQ(done.output, "[1, 2]\ndone\n") << done.error;
}

TEST(SandboxedJob, EndsAsAnyJobDoes) {
  EXPECT_EQ(Exec(shell("kill -SEGV $$")).receipt.signal, SIGSEGV);
  EXPECT_EQ(Exec(shell("kill -KILL $$")).receipt.signal, SIGKILL);
  EXPECT_EQ(Exec(sandboxed({"/usr/bin/python3", "-S", "-c", "import os; os.abort()"})).receipt.signal,
            SIGABRT);
  EXPECT_EQ(Exec(shell("exit 255")).receipt.exit_code, 255);
}

TEST(SandboxedJob, TermReachesItBeforeKill) {
  Limits limits;
  limits.wall_time = std::chrono::milliseconds(300);
  limits.grace = std::chrono::seconds(20);
  const Completed handled =
      Exec(shell("trap 'echo term; exit 3' TERM; while :; do sleep 0.02; done"), limits);
  EXPECT_EQ(handled.receipt.ending, Ending::kWallTime);
  EXPECT_EQ(handled.output, "term\n");
  EXPECT_EQ(handled.receipt.exit_code, 3);
  // And a job that does not handle it dies of it, rather than of KILL after the grace.
  const Completed plain = Exec(sandboxed({"/bin/sleep", "100"}), limits);
  EXPECT_EQ(plain.receipt.signal, SIGTERM);
}

TEST(SandboxedJob, TheMemoryLimitHolds) {
  Limits limits;
  limits.memory_bytes = int64_t{64} << 20;
  const Completed done =
      Exec(sandboxed({"/usr/bin/python3", "-S", "-c", "b = bytearray(200 << 20)"}), limits);
  if (done.receipt.mechanism.rfind("cgroup", 0) == 0) {
    EXPECT_EQ(done.receipt.ending, Ending::kMemoryLimit);
  } else {
    EXPECT_NE(done.receipt.exit_code, 0);  // MemoryError
  }
}

TEST(SandboxedJob, TemporaryFilesCountAgainstTheMemoryLimit) {
  Limits limits;
  limits.memory_bytes = int64_t{64} << 20;
  const Completed done = Exec(shell("head -c 200000000 /dev/zero >$TMPDIR/file"), limits);
  if (done.receipt.mechanism.rfind("cgroup", 0) != 0) GTEST_SKIP() << "no memory cgroup here";
  if (!has_pid_namespace()) GTEST_SKIP() << "temporary files are on disk here";
  EXPECT_EQ(done.receipt.ending, Ending::kMemoryLimit);
  EXPECT_LE(done.receipt.peak_bytes, limits.memory_bytes);
}

TEST(SandboxedJob, TheInitIsNotOneOfItsProcesses) {
  Limits limits;
  limits.processes = 1;
  EXPECT_EQ(Exec(sandboxed({"/bin/echo", "alone"}), limits).output, "alone\n");
}

TEST(SandboxedJob, WhatItLeavesRunningEndsWithIt) {
  const ScratchDirectory scratch;
  Command command = shell("cd " + scratch.path() +
                          "; : >lock; setsid sh -c 'setsid flock lock sleep 1000 &' & "
                          "until ! flock -n lock true; do sleep 0.01; done");
  command.sandbox.writable = {scratch.path()};
  const Completed done = Exec(command);
  EXPECT_EQ(done.receipt.exit_code, 0) << done.error;
  const int lock = open(scratch.path("lock").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(lock, 0);
  EXPECT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0) << "somebody still holds it";
  close(lock);
}

TEST(SandboxedJob, ReadableAndWritablePaths) {
  const ScratchDirectory scratch;
  ASSERT_EQ(mkdir(scratch.path("in").c_str(), 0700), 0);
  ASSERT_EQ(mkdir(scratch.path("out").c_str(), 0700), 0);
  ASSERT_EQ(symlink("in", scratch.path("link").c_str()), 0);
  std::ofstream(scratch.path("in/text")) << "text\n";
  Command command = shell("cat " + scratch.path("link/text") + "; cd " + scratch.path("out") +
                          " && echo written >result && mkdir d && mv result d/");
  command.sandbox.readable = {scratch.path("link")};
  command.sandbox.writable = {scratch.path("out")};
  const Completed done = Exec(command);
  EXPECT_EQ(done.output, "text\n") << done.error;
  std::string line;
  std::getline(std::ifstream(scratch.path("out/d/result")), line);
  EXPECT_EQ(line, "written");
}

TEST(SandboxedJob, AProgramAndAWorkingDirectoryOutsideTheSystem) {
  const ScratchDirectory scratch;
  std::ofstream(scratch.path("program")) << "#!/bin/sh\npwd\n";
  ASSERT_EQ(chmod(scratch.path("program").c_str(), 0755), 0);
  EXPECT_EQ(Exec(sandboxed({scratch.path("program")})).receipt.exit_code, 0);
  Command command = sandboxed({"./program"});
  command.working_directory = scratch.path();
  try {
    Exec(command);
    FAIL() << "the directory is not visible";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("not visible"));
  }
  command.sandbox.readable = {scratch.path()};
  EXPECT_EQ(Exec(command).output, scratch.path() + "\n");
}

TEST(SandboxedJob, ItsTemporaryDirectoryIsAWorkingDirectoryHoweverItIsWritten) {
  if (!has_pid_namespace()) GTEST_SKIP() << "temporary files are elsewhere here";
  for (const char* path : {"/tmp", "/tmp/", "/usr/../tmp/."}) {
    Command command = shell("echo written >file && cat \"$TMPDIR/file\"");
    command.working_directory = path;
    EXPECT_EQ(Exec(command).output, "written\n") << path;
  }
}

TEST(SandboxedJob, WhatCannotBeExecutedIsAnError) {
  const auto exit_code_of = [](const Command& command) {
    try {
      return Exec(command).receipt.exit_code;
    } catch (const std::exception& error) {
      return start_failure_exit_code(error);
    }
  };
  const ScratchDirectory scratch;
  std::ofstream(scratch.path("data")) << "x";
  EXPECT_EQ(exit_code_of(sandboxed({"/no/such/program"})), 127);
  EXPECT_EQ(exit_code_of(sandboxed({"no-such-program"})), 127);
  EXPECT_EQ(exit_code_of(sandboxed({scratch.path("data")})), 126);
}

TEST(SandboxedJob, KillEndsEverything) {
  Job job = Job::Start(shell("sleep 1000 & sleep 1000"));
  job.Kill();
  EXPECT_EQ(job.Wait().receipt.ending, Ending::kCancelled);
}

// Strict is what this machine can give, or it says so before anything starts.
TEST(SandboxedJob, StrictRunsOrIsRefused) {
  Command command = shell("echo ran");
  command.sandbox.level = SandboxLevel::kStrict;
  try {
    const Completed done = Exec(command);
    EXPECT_EQ(done.output, "ran\n");
    EXPECT_THAT(done.receipt.sandbox, Contains("network namespace"));
    EXPECT_THAT(done.receipt.cannot_promise, Not(Contains(HasSubstr("sandbox without"))));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotImplemented);
    EXPECT_THAT(error.what(), HasSubstr("without"));
    GTEST_SKIP() << error.what();
  }
}

TEST(SandboxedJob, ANetworkOnRequest) {
  const World world;
  const auto attempt = [&](std::vector<std::string> arguments, bool network) {
    std::vector<std::string> argv = {test_program("sandbox_escape")};
    for (const std::string& argument : arguments) argv.push_back(world.Expand(argument));
    Command command = sandboxed(argv);
    command.sandbox.network = network;
    return Exec(command).receipt.exit_code == 0;
  };
  EXPECT_TRUE(attempt({"connect_tcp", "{tcp}"}, true));
  EXPECT_TRUE(attempt({"send_udp", "{udp}"}, true));
  EXPECT_FALSE(attempt({"connect_tcp", "{tcp}"}, false));
  // A network is no way to the sockets of other programs here, nor to raw packets.
  EXPECT_FALSE(attempt({"connect_name", "{socket}"}, true));
  EXPECT_FALSE(attempt({"packet_socket"}, true));
  if (sandbox::kernel_support().landlock_abi < 6)
    GTEST_SKIP() << "abstract sockets are open before Landlock 6";
  EXPECT_FALSE(attempt({"connect_name", "{abstract}"}, true));
}

// The caller is killed: its job, and what the job has hidden from it, go too.
TEST(SandboxedJob, EndsWhenItsCallerIsKilled) {
  if (!has_pid_namespace()) GTEST_SKIP() << "no PID namespace here";
  const ScratchDirectory scratch;
  const pid_t caller = fork();  // this test's stand-in for another program
  if (caller == 0) {
    Command command = shell("cd " + scratch.path() + "; : >lock; setsid flock lock sleep 1000 & sleep 1000");
    command.sandbox.writable = {scratch.path()};
    Exec(command);
    _exit(0);
  }
  const auto is_locked = [&] {
    const int file = open(scratch.path("lock").c_str(), O_RDONLY | O_CLOEXEC);
    const bool locked = file >= 0 && flock(file, LOCK_EX | LOCK_NB) != 0;
    if (file >= 0) close(file);
    return locked;
  };
  const auto wait_until = [&](bool locked) {
    for (int i = 0; i < 1000 && is_locked() != locked; ++i) usleep(10000);
    return is_locked() == locked;
  };
  EXPECT_TRUE(wait_until(true));
  kill(caller, SIGKILL);
  waitpid(caller, nullptr, 0);
  EXPECT_TRUE(wait_until(false));
  CleanUpLeftovers();
}

TEST(SandboxedJob, GetsNothingSecretOfOurEnvironment) {
  setenv("PLIMSOLL_TEST_TOKEN", "secret", 1);
  setenv("TZ", "UTC", 1);
  EXPECT_EQ(Exec(shell("echo $PLIMSOLL_TEST_TOKEN-$TZ; [ $HOME = $TMPDIR ]")).output, "-UTC\n");
  Command given = shell("echo $PLIMSOLL_TEST_TOKEN-$TZ-$HOME");
  given.environment = {{"PLIMSOLL_TEST_TOKEN", "given"}, {"HOME", "/home"}};
  EXPECT_EQ(Exec(given).output, "given--/home\n");
  unsetenv("PLIMSOLL_TEST_TOKEN");
}

TEST(SandboxedJob, WrongPathsAreRefused) {
  for (const char* path : {"/", "/proc", "/proc/1", "/dev", "/dev/mem", "/tmp", "/no/such/path", ""}) {
    Command command = shell("true");
    command.sandbox.readable = {path};
    try {
      Exec(command);
      ADD_FAILURE() << "'" << path << "' was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << path;
    }
  }
}

}  // namespace
}  // namespace plimsoll::test
