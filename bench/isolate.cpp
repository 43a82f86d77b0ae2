// The figures of Isolate, in one run: plimsoll_isolate_bench [JOBS] (10000 by default).
//
// Times are medians of interleaved measurements, so that what else the machine does falls on both alike.
#include <fcntl.h>
#include <fmt/format.h>
#include <plimsoll/isolate.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "observe/cgroup.h"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace plimsoll {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kMiB = int64_t{1} << 20;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Command command_of(std::vector<std::string> argv) {
  Command command;
  command.argv = std::move(argv);
  command.standard_output = command.standard_error = Output::kDiscard;
  return command;
}

void bare_spawn() {
  char program[] = "/bin/true";
  char* argv[] = {program, nullptr};
  pid_t pid = 0;
  if (::posix_spawn(&pid, program, nullptr, nullptr, argv, environ) != 0) std::abort();
  ::waitpid(pid, nullptr, 0);
}

void bare_fork() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
}

struct Times {
  std::vector<double> spawn, job, limited, fork;
};

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

Times measure(int rounds) {
  const Command command = command_of({"/bin/true"});
  const auto time = [](std::vector<double>& times, auto&& action) {
    const Clock::time_point start = Clock::now();
    action();
    times.push_back(milliseconds_since(start));
  };
  Times times;
  for (int i = 0; i < rounds; ++i) {
    time(times.spawn, bare_spawn);
    time(times.job, [&] { Exec(command); });
    time(times.limited, [&] { Exec(command, {.memory_bytes = 64 * kMiB, .processes = 16}); });
  }
  for (int i = 0; i < 10; ++i) time(times.fork, bare_fork);
  return times;
}

// A busy machine moves medians; the fastest tenth shows what the work itself costs.
void overhead() {
  measure(20);  // warms up
  constexpr int kRounds = 300;
  const Times small = measure(kRounds);
  constexpr size_t kLarge = size_t{2} << 30;
  void* large = ::mmap(nullptr, kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (large == MAP_FAILED) return;
  ::madvise(large, kLarge, MADV_NOHUGEPAGE);
  std::memset(large, 1, kLarge);
  const Times big = measure(kRounds);
  ::munmap(large, kLarge);
  for (const double share : {0.5, 0.1}) {
    const auto of = [share](const std::vector<double>& values) { return quantile(values, share); };
    for (const Times* times : {&small, &big})
      fmt::print(
          "{}, parent of {}: posix_spawn {:.3f} ms, job {:.3f} ms (+{:.3f}), job with limits {:.3f} ms "
          "(+{:.3f}), "
          "bare fork {:.3f} ms\n",
          share == 0.5 ? "median" : "fastest tenth", times == &small ? "16 MB" : "2 GB", of(times->spawn),
          of(times->job), of(times->job) - of(times->spawn), of(times->limited),
          of(times->limited) - of(times->spawn), of(times->fork));
    fmt::print("{}: job in the large parent / in the small one {:.3f}\n",
               share == 0.5 ? "median" : "fastest tenth", of(big.job) / of(small.job));
  }
}

// Jobs for each second, from `threads` threads.
double rate(int threads, int jobs, bool bare) {
  std::atomic<int> left{jobs};
  const Clock::time_point start = Clock::now();
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&left, bare] {
      const Command command = command_of({"/bin/true"});
      while (left.fetch_sub(1) > 0) {
        if (bare)
          bare_spawn();
        else
          Exec(command);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  return jobs / (milliseconds_since(start) / 1000);
}

struct Holdings {
  int64_t private_bytes = 0, cgroup_bytes = 0, descriptors = 0;
};

Holdings holdings() {
  FileReader reader;
  const std::string_view rollup = reader.read("/proc/self/smaps_rollup").value_or("");
  Holdings found;
  found.private_bytes = 1024 * (number_of(rollup, "Private_Dirty").value_or(0) +
                                number_of(rollup, "Private_Clean").value_or(0));
  if (const auto cgroup = MemoryCgroup::of_process(0)) found.cgroup_bytes = cgroup->usage_bytes().value_or(0);
  for (int descriptor = 0; descriptor < 1024; ++descriptor)
    found.descriptors += ::fcntl(descriptor, F_GETFD) >= 0;
  return found;
}

void endurance(int jobs) {
  const Command command = command_of({"/bin/true"});
  for (int i = 0; i < 200; ++i) Exec(command);
  const Holdings before = holdings();
  const Clock::time_point start = Clock::now();
  int64_t residue = 0, failed = 0;
  for (int i = 0; i < jobs; ++i) {
    const Receipt receipt = Exec(command).receipt;
    residue += receipt.residue_bytes;
    failed += receipt.exit_code != 0;
  }
  const double seconds = milliseconds_since(start) / 1000;
  const Holdings after = holdings();
  fmt::print(
      "{} jobs in {:.1f} s ({:.0f}/s), {} failed: private memory {:+} bytes, own cgroup {:+} bytes (sum of "
      "residues {:+}), descriptors {:+}, children {}\n",
      jobs, seconds, jobs / seconds, failed, after.private_bytes - before.private_bytes,
      after.cgroup_bytes - before.cgroup_bytes, residue, after.descriptors - before.descriptors,
      ::waitpid(-1, nullptr, WNOHANG) < 0 ? "none" : "LEFT");
}

Command take(int64_t bytes) {
  return command_of({"/usr/bin/python3", "-S", "-c",
                     fmt::format("import mmap\nm=mmap.mmap(-1,{},flags=mmap.MAP_PRIVATE|mmap.MAP_ANONYMOUS)\n"
                                 "for i in range(0,len(m),4096): m[i]=1\n",
                                 bytes)});
}

void limits(int jobs) {
  constexpr int64_t kLimit = 64 * kMiB;
  const int64_t base = Exec(take(4096)).receipt.peak_bytes;
  int stopped = 0, succeeded = 0;
  double slowest_ms = 0;
  std::vector<double> kill_ms;
  for (int i = 0; i < jobs; ++i) {
    const Receipt over = Exec(take(2 * kLimit), {.memory_bytes = kLimit}).receipt;
    stopped += over.ending == Ending::kMemoryLimit && over.limit_hit;
    const Receipt below = Exec(take(kLimit * 9 / 10 - base), {.memory_bytes = kLimit}).receipt;
    succeeded += below.ending == Ending::kExited && below.exit_code == 0;
    const Receipt late = Exec(command_of({"/bin/sleep", "100"}),
                              {.memory_bytes = kLimit, .wall_time = std::chrono::milliseconds(5)})
                             .receipt;
    kill_ms.push_back(late.kill_to_report_ms);
    slowest_ms = std::max(slowest_ms, late.kill_to_report_ms);
  }
  fmt::print("over the limit: {} of {} stopped and reported; at 90 % of it: {} of {} succeed\n", stopped,
             jobs, succeeded, jobs);
  fmt::print("from kill to report: median {:.3f} ms, longest {:.3f} ms\n", quantile(kill_ms, 0.5),
             slowest_ms);
}

int run(int jobs) {
  fmt::print("mechanism: {}\n", Exec(command_of({"/bin/true"})).receipt.mechanism);
  overhead();
  for (const int threads : {1, 2})
    fmt::print("{} thread(s): {:.0f} jobs/s; bare posix_spawn and wait {:.0f}/s\n", threads,
               rate(threads, 1000, false), rate(threads, 1000, true));
  limits(100);
  endurance(jobs);
  return 0;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  return plimsoll::run(argc > 1 ? std::atoi(argv[1]) : 10000);
}
