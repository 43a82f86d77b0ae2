#include "isolate/job_impl.h"

#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/fail.h"
#include "isolate/freezer.h"
#include "isolate/guard.h"
#include "isolate/leftovers.h"
#include "isolate/patience.h"
#include "isolate/request.h"

namespace plimsoll {
namespace {

double milliseconds_between(Job::Impl::Clock::time_point from, Job::Impl::Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

double milliseconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
}

// Somebody else in this process waited for the job, or SIGCHLD is ignored: since 6.15 its descriptor still
// knows.
std::optional<int> status_of_reaped(int pidfd) noexcept {
  struct Info {  // struct pidfd_info, as far as it was in the first version
    uint64_t mask, cgroup;
    uint32_t ids[11];
    int32_t exit_code;
  };
  constexpr uint64_t kExit = 8;  // PIDFD_INFO_EXIT
  Info info = {};
  info.mask = kExit;
  if (::ioctl(pidfd, _IOWR(0xFF, 11, Info), &info) != 0 || (info.mask & kExit) == 0) return std::nullopt;
  return info.exit_code;
}

// Nobody is waited for without end: who does not die of KILL for so long is told of instead.
constexpr std::chrono::milliseconds kPatience(5000), kUntilThawed(100);
constexpr std::chrono::milliseconds kWorthAScan(
    50);  // jobs this long are looked for outside their cgroup too

constexpr std::chrono::milliseconds kUntilKilled(20);  // from the kernel's notice to the death of somebody

Limits with_times_within_the_clock(Limits limits) noexcept {
  limits.wall_time = within_the_clock(limits.wall_time);
  limits.grace = within_the_clock(limits.grace);
  return limits;
}

}  // namespace

Job::Impl::Impl(const Command& command, const Limits& given, bool is_guarded)
    : limits(with_times_within_the_clock(given)),
      pump(given.output_bytes),
      sandbox(sandbox_for(command)),
      group(limits_with_init(given, sandbox.get()), surroundings()),
      thrash_watch(given.memory_bytes),
      wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      guarded(is_guarded),
      cleans_leftovers(command.clean_leftovers) {
  if (!wake) fail(ErrorCode::kIo, "cannot make an eventfd for a job: {}", std::strerror(errno));
  start(command);
}

Job::Impl::~Impl() {
  if (owner != ::getpid()) {
    group.abandon();
    return;
  }
  if (finished || process.pid == 0) return;
  try {
    {
      const std::lock_guard lock(group_mutex);
      group.kill();
    }
    reap();
    settle();
  } catch (...) {  // nobody is left to tell
  }
}

Confinement* Job::Impl::confinement() const noexcept {
  if (sandbox) return sandbox.get();
  return enclosure.get();
}

int Job::Impl::ended_descriptor() const noexcept {
  const int of_keeper = enclosure ? enclosure->ended_descriptor() : -1;
  return of_keeper >= 0 ? of_keeper : process.pidfd.get();
}

void Job::Impl::refuse_if_unheld() const {
  const std::vector<std::string> unheld = group.unheld();
  if (!limits.require_hold || unheld.empty()) return;
  std::string what;
  for (const std::string& sentence : unheld) what += (what.empty() ? "" : "; ") + sentence;
  fail(ErrorCode::kNotImplemented, "the job is not started, because it cannot be held here: {}", what);
}

void Job::Impl::launch(SpawnRequest& request, const Command& command) {
  request.confinement = confinement();
  try {
    process = spawn(request);
  } catch (const StartError& error) {
    // Without a mount namespace root's jobs can do without it.
    const bool only_cgroups =
        enclosure && enclosure->options().read_only_cgroups && !enclosure->options().processes;
    if (!only_cgroups || error.reason() != StartError::kOther) throw;
    remember_open_cgroups();
    enclosure = enclosure_for(command, limits, group);
    request.confinement = confinement();
    process = spawn(request);
  }
  if (Confinement* confined = confinement()) confined->started();
}

void Job::Impl::start(const Command& command) {
  enclosure = enclosure_for(command, limits, group);
  group.shut_in(confinement(), enclosure ? &enclosure->options() : nullptr);
  refuse_if_unheld();
  remains.begin();
  Streams streams = open_streams(command, limits.output_bytes > 0, pump, completed.output, completed.error);
  SpawnRequest request;
  request.programs = program_candidates(command.argv[0]);
  request.argv = command.argv;
  request.environment = environment_of(command);
  request.working_directory = command.working_directory;
  request.descriptors = std::move(streams.descriptors);
  // The kernel ties the death signal to the thread, not to the process: only the main thread's end is ours.
  request.dies_with_thread = !guarded || ::gettid() == ::getpid();
  if (sandbox) enter_sandbox(request, *sandbox);
  group.enlist(request);
  started = Clock::now();
  meter.start(started);
  thrash_watch.start(started);
  next_cpu_look_ = started;
  launch(request, command);
  try {
    group.started(process.pid);
    if (group.is_scattered()) tell_guard_of_session(process.pid, true);
    if (enclosure && enclosure->keeps()) tell_guard_of_session(enclosure->job_number(), true);
  } catch (...) {
    group.kill();
    reap();
    settle();
    throw;
  }
}

void Job::Impl::cancel(bool at_once) noexcept {
  cancelled.fetch_add(at_once ? 2 : 1);
  const uint64_t one = 1;
  if (::write(wake.get(), &one, sizeof(one)) < 0) return;  // full: it is readable already
}

Job::Impl::Clock::time_point Job::Impl::next_look(Clock::time_point deadline) const {
  Clock::time_point next = std::min(deadline, meter.next());  // which is sooner than any look for thrashing
  if (kill_at_) return std::min(next, *kill_at_);
  const Clock::time_point now = Clock::now();
  if (now < look_for_kill_until_) next = std::min(next, now + std::chrono::milliseconds(1));
  if (limits.wall_time.count() > 0) next = std::min(next, started + limits.wall_time);
  if (limits.cpu_time.count() > 0) next = std::min(next, next_cpu_look_);
  return next;
}

bool Job::Impl::wait_until(Clock::time_point deadline) {
  std::vector<pollfd> polled;
  for (;;) {
    polled.assign({{first_is_gone_ ? -1 : ended_descriptor(), POLLIN, 0}, {wake.get(), POLLIN, 0}});
    const size_t oom = polled.size();
    if (group.oom_descriptor() >= 0) polled.push_back({group.oom_descriptor(), POLLIN, 0});
    pump.add_to(polled);
    const auto pause = std::chrono::ceil<std::chrono::microseconds>(next_look(deadline) - Clock::now());
    const int64_t microseconds = std::max<int64_t>(0, pause.count());
    const timespec timeout = {microseconds / 1000000, microseconds % 1000000 * 1000};
    if (::ppoll(polled.data(), polled.size(), &timeout, nullptr) < 0 && errno != EINTR)
      fail(ErrorCode::kIo, "cannot wait for a job: {}", std::strerror(errno));
    pump.move();
    const Clock::time_point now = Clock::now();
    if (group.oom_descriptor() >= 0 && polled[oom].revents != 0) {
      group.heed_oom();
      look_for_kill_until_ = now + kUntilKilled;
    }
    if (polled[0].revents != 0) {
      first_is_gone_ = true;
    } else {
      watch(now);
    }
    if ((first_is_gone_ && is_over(now)) || given_up_) return true;
    if (now >= deadline) return false;
  }
}

// The first process is gone. As long as a reader of ours is slow with what the job wrote, the job waits as it
// would have waited for its own pipe: until it is cancelled or out of time.
bool Job::Impl::is_over(Clock::time_point now) {
  const bool out_of_time = limits.wall_time.count() > 0 && now >= started + limits.wall_time;
  if (!pump.owes() || out_of_time || cancelled.load() > 0) return true;
  const std::lock_guard lock(group_mutex);
  int64_t& killed = completed.receipt.processes_killed;
  killed = std::max(killed, group.kill());
  return false;
}

void Job::Impl::watch(Clock::time_point now) {
  const std::lock_guard lock(group_mutex);
  check_cancelled(now);
  if (now >= meter.next()) {
    group.sample();
    meter.add(now, group.memory_bytes(), group.peak_bytes());
    if (now >= started + kWorthAScan) {
      group.sample_sockets();
      if (!group.is_scattered() && !group.is_in_place(process.pid)) somebody_left_ = true;
    }
  }
  check_limits(now);
  if (kill_at_ && now >= *kill_at_) {
    group.kill();
    if (somebody_left_) ::syscall(SYS_pidfd_send_signal, process.pidfd.get(), SIGKILL, nullptr, 0);
    kill_at_ = now + std::chrono::milliseconds(20);  // until it is dead
    if (!killed_at_) killed_at_ = now;
    if (now >= *killed_at_ + kUntilThawed) {
      group.thaw();
      thaw(process.pid);
    }
    given_up_ = now >= *killed_at_ + kPatience;
  }
}

void Job::Impl::check_cancelled(Clock::time_point now) {
  const int how = cancelled.load();
  if (how == 0) return;
  uint64_t count = 0;
  if (::read(wake.get(), &count, sizeof(count)) < 0 && errno != EAGAIN) return;
  if (!ending_) end(Ending::kCancelled, now, how >= 2);
  if (how >= 2) kill_at_ = std::min(kill_at_.value_or(now), now);
}

void Job::Impl::check_limits(Clock::time_point now) {
  if (ending_) return;
  if (limits.memory_bytes > 0 && is_over_memory(now)) return end(Ending::kMemoryLimit, now, true);
  if (pump.limit_reached()) return end(Ending::kOutputLimit, now, false);
  if (limits.wall_time.count() > 0 && now >= started + limits.wall_time)
    return end(Ending::kWallTime, now, false);
  if (limits.processes > 0 && !group.limits_processes() && group.tasks() > limits.processes)
    return end(Ending::kProcessLimit, now, true);
  if (limits.cpu_time.count() > 0 && now >= next_cpu_look_) {
    const double left_ms = static_cast<double>(limits.cpu_time.count()) - cpu_ms();
    if (left_ms <= 0) return end(Ending::kCpuTime, now, false);
    // No group can use it up sooner than with all CPUs.
    const double cpus = std::max(1U, std::thread::hardware_concurrency());
    const double pause_ms = std::clamp(left_ms / cpus, 1.0, 1000.0);
    next_cpu_look_ = now + std::chrono::microseconds(static_cast<int64_t>(pause_ms * 1000));
  }
}

bool Job::Impl::is_over_memory(Clock::time_point now) {
  if (!group.limits_memory()) return group.memory_bytes() > limits.memory_bytes;
  if (group.killed_at_limit()) return true;
  // Version 1 holds what TCP takes to the limit, but apart from the rest.
  if (group.has_sockets_apart() && group.memory_bytes() + group.socket_bytes() > limits.memory_bytes)
    return true;
  if (now < thrash_watch.next()) return false;
  const auto figures = group.thrash_figures();
  thrashing_ = figures && thrash_watch.add(now, *figures);
  return thrashing_;
}

void Job::Impl::end(Ending why, Clock::time_point now, bool at_once) {
  ending_ = why;
  kill_decided_ = now;
  kill_at_ = at_once ? now : now + limits.grace;
  if (!at_once) group.signal(SIGTERM);
}

bool Job::Impl::ends_within(std::chrono::milliseconds patience) const noexcept {
  const Clock::time_point end = Clock::now() + patience;
  for (;;) {
    pollfd polled = {process.pidfd.get(), POLLIN, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    const int ready = ::poll(&polled, 1, static_cast<int>(std::clamp<int64_t>(left, 0, INT32_MAX)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // no descriptor of it: then we have to wait for it
    if (left <= 0) return false;
  }
}

// A keeper stays while it has children: it goes when they are gone.
void Job::Impl::end_keeper() {
  if (!ending_) let_go();
  const Clock::time_point give_up = Clock::now() + kPatience;
  int64_t& killed = completed.receipt.processes_killed;
  do killed = std::max(killed, group.kill());
  while (!group.empty() && Clock::now() < give_up && !ends_within(std::chrono::milliseconds(1)));
  ::syscall(SYS_pidfd_send_signal, process.pidfd.get(), SIGKILL, nullptr, 0);
}

void Job::Impl::reap() {
  if (enclosure && enclosure->keeps()) end_keeper();
  rusage usage = {};
  if (given_up_ || !ends_within(kPatience)) {
    given_up_ = true;
    status_known_ = false;
    return;
  }
  while (::wait4(process.pid, &status_, 0, &usage) < 0) {
    if (errno == EINTR) continue;
    const auto status = status_of_reaped(process.pidfd.get());
    status_ = status.value_or(0);
    status_known_ = status.has_value();
    break;
  }
  if (Confinement* confined = confinement()) status_ = confined->job_status().value_or(status_);
  reaped_cpu_ms_ = milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
  // Until exec it lived in our memory, and the kernel counts that as its own: what is no more than our peak
  // is ours.
  rusage self = {};
  ::getrusage(RUSAGE_SELF, &self);
  if (usage.ru_maxrss > self.ru_maxrss) reaped_peak_bytes_ = usage.ru_maxrss * 1024;
}

double Job::Impl::cpu_ms() const {
  return std::max(group.cpu_ms().value_or(0), reaped_cpu_ms_);
}

// Those who are leaving anyway, such as the guard of a job that is one of us, need not be killed.
void Job::Impl::let_go() {
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(3);
  while (!group.empty() && Clock::now() < end) std::this_thread::sleep_for(std::chrono::microseconds(200));
}

// Whoever is still alive in the group is killed; waits until nobody is.
void Job::Impl::empty_group() {
  if (!ending_) let_go();
  int64_t& killed = completed.receipt.processes_killed;
  killed = std::max(killed, group.kill());
  std::chrono::microseconds pause(50);
  const Clock::time_point begin = Clock::now(), give_up = begin + (given_up_ ? kUntilThawed : kPatience);
  while (!group.empty() && Clock::now() < give_up) {
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(5000));
    group.kill();
    if (Clock::now() >= begin + kUntilThawed) group.thaw();
  }
  if (!group.empty()) completed.receipt.alive = group.members();
  if (given_up_ && completed.receipt.alive.empty()) completed.receipt.alive = {process.pid};
  group.reap_orphans();
}

// Of those in the job's session who are in none of its cgroups: they took themselves out.
void Job::Impl::kill_those_who_left() {
  if (group.is_scattered() || (!somebody_left_ && Clock::now() < started + kWorthAScan)) return;
  ProcessTracker session("");
  session.adopt(process.pid);
  session.scan(false);
  std::vector<int> pids;
  for (const int pid : session.pids()) {
    if (!group.is_in_place(pid)) pids.push_back(pid);
  }
  if (!pids.empty()) session.signal(SIGKILL);
  if (pids.empty() && !somebody_left_) return;
  completed.receipt.noticed.push_back(
      fmt::format("the job took processes out of its cgroup{}: what they held is in none of these figures",
                  pids.empty() ? std::string() : fmt::format(" ({}, killed)", fmt::join(pids, ", "))));
}

void Job::Impl::report_doubts() {
  Receipt& receipt = completed.receipt;
  receipt.mechanism = group.mechanism();
  receipt.cannot_promise = group.cannot_promise();
  if (group.killed_above_limit())
    receipt.cannot_promise.push_back(
        "a process of the job was killed by the kernel though the job was below its limit: a cgroup above "
        "it, "
        "or the machine, was out of memory");
  if (receipt.peak_bytes == 0)
    receipt.cannot_promise.push_back("the job was over before its memory was sampled: its peak is not known");
  if (!guarded)
    receipt.cannot_promise.push_back(
        "without /bin/sh nobody watches over us: if this process is killed, so is the job's first process, "
        "but "
        "its descendants and its cgroup stay until the next job is started from the same cgroup");
  if (group.limits_memory() && !confinement())
    receipt.cannot_promise.push_back(
        "the job can reach its own cgroup's files: it could raise its limits, or leave");
  if (sandbox) sandbox->report(receipt);
}

// After the first process was reaped: ends the rest, reads the figures, gives everything back.
void Job::Impl::settle() {
  const std::lock_guard lock(group_mutex);
  Receipt& receipt = completed.receipt;
  kill_those_who_left();
  empty_group();
  const Clock::time_point ended = Clock::now();
  pump.finish();
  if (!ending_ && pump.limit_reached()) ending_ = Ending::kOutputLimit;  // it ended before we looked
  const int64_t held = group.limits_memory() ? group.memory_bytes() : 0;
  receipt.peak_bytes = std::max(group.peak_bytes(), group.limits_memory() ? 0 : reaped_peak_bytes_);
  group.sample_sockets();
  receipt.socket_peak_bytes = group.socket_peak_bytes();
  meter.add(ended, held, receipt.peak_bytes);
  receipt.byte_seconds = meter.byte_seconds();
  receipt.wall_ms = milliseconds_between(started, ended);
  receipt.cpu_ms = cpu_ms();
  if (group.killed_at_limit()) ending_ = Ending::kMemoryLimit;
  receipt.limit_hit = ending_ == Ending::kMemoryLimit;
  receipt.thrashing = thrashing_;
  for (std::string& change : group.changes()) receipt.noticed.push_back(std::move(change));
  report_doubts();
  receipt.leftovers =
      remains.end(cleans_leftovers, PageCharges(cleans_leftovers ? group.memory_directory() : std::string()));
  group.reclaim();
  if (group.limits_memory()) {
    receipt.residue_bytes = group.memory_bytes();
    receipt.residue_known = true;
    receipt.returned_bytes = held - receipt.residue_bytes;
  }
  const int attempts = receipt.alive.empty() ? 1000 : 1;
  for (int attempt = 0; !group.remove() && attempt < attempts; ++attempt) {
    group.kill();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (group.is_scattered()) tell_guard_of_session(process.pid, false);
  if (enclosure && enclosure->keeps()) tell_guard_of_session(enclosure->job_number(), false);
  finished = true;
}

Completed Job::Impl::finish() {
  if (finished) fail(ErrorCode::kInvalidArgument, "job {}: Wait was called twice", process.pid);
  reap();
  if (!ending_ && cancelled.load() > 0 && WIFSIGNALED(status_)) {  // Kill was faster than we saw it
    ending_ = Ending::kCancelled;
    kill_decided_ = Clock::now();
  }
  settle();
  Receipt& receipt = completed.receipt;
  receipt.limit_bytes = limits.memory_bytes;
  receipt.signal = WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
  receipt.exit_code = receipt.signal != 0 ? 128 + receipt.signal : WEXITSTATUS(status_);
  if (!status_known_) {
    receipt.exit_code = -1;
    receipt.cannot_promise.push_back(
        given_up_ ? "the job does not die of KILL: it was left alone, and its end is not known"
                  : "the exit code is unknown: something else in this process waited for the job, or ignores "
                    "SIGCHLD");
  }
  receipt.ending = ending_.value_or(receipt.signal != 0 ? Ending::kSignalled : Ending::kExited);
  if (kill_decided_) receipt.kill_to_report_ms = milliseconds_between(*kill_decided_, Clock::now());
  return std::move(completed);
}

Receipt Job::Impl::snapshot() {
  const std::lock_guard lock(group_mutex);
  Receipt receipt;
  receipt.wall_ms = milliseconds_between(started, Clock::now());
  receipt.cpu_ms = cpu_ms();
  receipt.peak_bytes = group.peak_since_reset_bytes();
  receipt.limit_bytes = limits.memory_bytes;
  receipt.limit_hit = group.killed_at_limit() || thrashing_;
  receipt.thrashing = thrashing_;
  receipt.byte_seconds = meter.byte_seconds();
  receipt.mechanism = group.mechanism();
  receipt.cannot_promise = group.cannot_promise();
  if (sandbox) sandbox->report(receipt);
  return receipt;
}

}  // namespace plimsoll
