#include <time.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "observe/account.h"
#include "observe/budget.h"
#include "observe/container.h"
#include "observe/process_reader.h"
#include "plimsoll/observe.h"

namespace plimsoll {
namespace {

// Version 1: how often processes that are not watched are asked what is theirs of the kernel's memory.
constexpr double kSecondsPerEstimate = 15;

double clock_seconds(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Why a process cannot be opened, for people.
[[noreturn]] void fail_to_open(int pid, int error, const std::string& proc_root) {
  if (error == ENOENT || error == ESRCH || error == ENOTDIR)
    fail(ErrorCode::kInvalidArgument,
         "process {}: not in {} (it has ended, or it is another user's and hidden by hidepid: ask as its "
         "owner or as root)",
         pid, proc_root);
  fail(ErrorCode::kIo, "process {}: {} {} be read: {}{}", pid, proc_root,
       is_our_trouble(error) ? "cannot" : "may not", std::generic_category().message(error),
       is_our_trouble(error) ? "" : " (ask as its owner or as root)");
}

}  // namespace

struct Observer::Impl {
  Impl(int pid, const ObserverOptions& chosen)
      : options(chosen),
        root(chosen.proc_root, pid),
        processes(chosen.proc_root, pid, chosen.tree, chosen.cost_limit, chosen.told_directory),
        container({chosen.proc_root, chosen.cgroup_root}),
        budget(chosen.cost_limit) {
    if (root.descriptor() < 0) fail_to_open(pid, root.error(), options.proc_root);
    const auto stat = root.stat(reader);
    if (!stat) fail_to_open(pid, reader.error() == 0 ? ESRCH : reader.error(), options.proc_root);
    check(*stat, root.status(reader));
    start_ticks = stat->start_ticks;
    program = stat->program_identity().value_or(0);
  }

  static void check(const ProcessStat& stat, const std::optional<ProcessStatus>& status) {
    if (stat.is_kernel_thread())
      fail(ErrorCode::kInvalidArgument,
           "process {} ({}): a thread of the kernel, which has no memory of its own to watch", stat.pid,
           stat.name);
    if (stat.has_ended())
      fail(ErrorCode::kInvalidArgument, "process {} ({}): has ended and only waits for its parent (zombie)",
           stat.pid, stat.name);
    if (status && status->thread_group != 0 && status->thread_group != stat.pid)
      fail(ErrorCode::kInvalidArgument, "process {} ({}): a thread of process {}: watch that", stat.pid,
           stat.name, status->thread_group);
  }

  // Empty if the process can be read now, otherwise why not.
  std::string find_gap(std::optional<ProcessStat>& stat) {
    stat = root.stat(reader);
    if (!ended && !stat && is_our_trouble(reader.error()))
      return "the process cannot be read now: " + std::generic_category().message(reader.error());
    if (ended || !stat || stat->has_ended() || stat->start_ticks != start_ticks) {
      ended = true;
      return "the process has ended";
    }
    const uint64_t now = stat->program_identity().value_or(program);
    if (now != program) {
      program = now;
      processes.forget();
      return fmt::format("the process executed another program: {}", printable(stat->name));
    }
    return stat->is_stopped() ? "the process is stopped" : "";
  }

  Sample read(int64_t iteration, bool full, FileShares* files, ReadingGaps* gaps) {
    if (const auto sample = read_whole(iteration, full, files, gaps)) return *sample;
    if (files != nullptr) files->clear();
    // A leader may go before its threads: then one of them is asked.
    if (const auto sample = read_whole(iteration, full, files, gaps)) return *sample;
    Sample sample;
    sample.seconds = clock_seconds(CLOCK_MONOTONIC) - began;
    sample.iteration = iteration;
    sample.gap = true;
    sample.gap_reason = "the process ended while it was read";
    return sample;
  }

  // Nothing if it began to end between two looks: what was read may be torn.
  std::optional<Sample> read_whole(int64_t iteration, bool full, FileShares* files, ReadingGaps* gaps) {
    Sample sample;
    sample.seconds = clock_seconds(CLOCK_MONOTONIC) - began;
    sample.iteration = iteration;
    std::optional<ProcessStat> stat;
    sample.gap_reason = find_gap(stat);
    sample.gap = !sample.gap_reason.empty();
    if (sample.gap) return sample;
    ProcessReader::Result result = processes.read(root, *stat, full, files);
    if (result.view.processes == 0) return std::nullopt;
    sample.process = result.view;
    sample.members = std::move(result.members);
    sample.exact = result.exact;
    const bool estimate = full && (files != nullptr || sample.seconds >= next_estimate);
    if (estimate) next_estimate = sample.seconds + kSecondsPerEstimate;
    const int living = root.living_thread(*stat);
    sample.container = container.read(living, sample.process, estimate);
    if (root.is_leaving(reader, living)) return std::nullopt;
    if (gaps != nullptr) *gaps = result.gaps;
    return sample;
  }

  // The tree, then whoever else is in the container: its files are in the cache too.
  std::vector<int> find_cache_pids() {
    constexpr size_t kMost = 256;
    std::vector<int> pids;
    for (const auto& member : processes.members()) pids.push_back(member.pid);
    for (const int pid : container.pids()) {
      if (std::find(pids.begin(), pids.end(), pid) == pids.end()) pids.push_back(pid);
    }
    if (pids.size() > kMost) pids.resize(kMost);
    return pids;
  }

  ObserverOptions options;
  ProcessDirectory root;
  uint64_t start_ticks = 0;
  uint64_t program = 0;
  bool ended = false;
  ProcessReader processes;
  ContainerReader container;
  CostBudget budget;
  FileReader reader;
  double began = clock_seconds(CLOCK_MONOTONIC);
  double next_estimate = 0;
};

Observer::Observer(int pid, const ObserverOptions& options) {
  if (pid <= 0) fail(ErrorCode::kInvalidArgument, "process {}: a process number is above 0", pid);
  impl_ = std::make_unique<Impl>(pid, options);
}
Observer::~Observer() = default;
Observer::Observer(Observer&&) noexcept = default;
Observer& Observer::operator=(Observer&&) noexcept = default;

Sample Observer::Read(int64_t iteration) {
  const double start = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
  const double elapsed = clock_seconds(CLOCK_MONOTONIC) - impl_->began;
  const bool full = impl_->budget.affords_full(elapsed);
  const double shares_before = impl_->processes.share_seconds();
  Sample sample = impl_->read(iteration, full, nullptr, nullptr);
  const double shares = impl_->processes.share_seconds() - shares_before;
  impl_->budget.charge(clock_seconds(CLOCK_THREAD_CPUTIME_ID) - start - shares, full && !sample.gap);
  impl_->budget.charge_apart(shares);
  return sample;
}

MemoryAccount Observer::Account() {
  const double start = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
  MemoryAccount account;
  AccountSources sources;
  // A process that grows while it is read differs from the kernel's figure of a moment later: look again.
  constexpr int kAttempts = 3;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    sources = {};
    account.sample = impl_->read(-1, true, &sources.files, &sources.gaps);
    if (account.sample.gap || is_reconciled(account.sample)) break;
  }
  sources.share = impl_->container.share();
  sources.returns = impl_->container.returns();
  sources.proc_root = impl_->options.proc_root;
  sources.cache_pids = impl_->find_cache_pids();
  if (!account.sample.gap)
    fill_account(sources, account);
  else
    account.notes.push_back(account.sample.gap_reason);
  // Whoever asks for accounts decides how often: they do not make full samples rarer.
  impl_->budget.charge_apart(clock_seconds(CLOCK_THREAD_CPUTIME_ID) - start);
  return account;
}

bool Observer::Ended() const noexcept {
  return impl_->ended;
}

double Observer::OwnCpuSeconds() const noexcept {
  return impl_->budget.spent();
}

}  // namespace plimsoll
