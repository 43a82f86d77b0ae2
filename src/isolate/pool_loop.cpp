#include "isolate/pool_loop.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

#include "base/fail.h"

namespace plimsoll {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick{50};              // CPU time is looked at, and what a Job does while waited for
constexpr milliseconds kClosingPatience{500};  // likewise when the pool closes
constexpr milliseconds kFirstBackOff{100};     // after a failed start; doubles
constexpr milliseconds kLongestBackOff{10000};
constexpr int kUncertainFailures = 3;  // starts that were killed, one after the other, before we give up

}  // namespace

PoolLoop::PoolLoop(PoolOptions options, PoolQueue& queue)
    : options_(std::move(options)),
      queue_(queue),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wanted_(options_.workers) {
  if (!epoll_) fail(ErrorCode::kIo, "pool: no descriptor for its thread: {}", std::strerror(errno));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<uint64_t>(Source::kWake);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, queue_.wake_fd(), &event) != 0)
    fail(ErrorCode::kIo, "pool: cannot watch a descriptor: {}", std::strerror(errno));
}

void PoolLoop::Run(std::promise<void>& first) {
  queue_.OwnedByThisThread();
  try {
    start_worker();
  } catch (...) {
    first.set_exception(std::current_exception());
    return;
  }
  first.set_value();
  while (!closing_ || !workers_.empty()) turn();
  publish_and_deliver();
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  news_.notify_all();
}

void PoolLoop::turn() {
  obey_cancellations();
  if (queue_.closed()) close_workers();
  start_missing_workers();
  dispatch();
  publish_and_deliver();
  wait_for_events();
  on_deadlines();
}

void PoolLoop::obey_cancellations() {
  PoolQueue::Cancelled cancelled = queue_.TakeCancelled();
  for (PoolJob& job : cancelled.waiting)
    finish(std::move(job), {Outcome::Kind::kCancelled, {}, "cancelled before it began", {}, 0});
  for (const int64_t id : cancelled.others)
    for (auto& [serial, worker] : workers_)
      if (worker->state() == State::kBusy && worker->job().id == id)
        kill(*worker, Outcome::Kind::kCancelled, "cancelled while it ran; its worker was killed");
}

void PoolLoop::close_workers() {
  for (PoolJob& job : queue_.PopAll())
    finish(std::move(job), {Outcome::Kind::kCancelled, {}, "the pool was closed before it began", {}, 0});
  if (closing_) return;
  closing_ = true;
  for (auto& [serial, worker] : workers_) {
    if (worker->state() == State::kIdle) leave(*worker, kClosingPatience);
    if (worker->state() == State::kBusy || worker->state() == State::kStarting)
      kill(*worker, Outcome::Kind::kCancelled, "the pool was closed while it ran; its worker was killed");
  }
}

int PoolLoop::count(State state) const {
  return static_cast<int>(std::count_if(workers_.begin(), workers_.end(),
                                        [&](const auto& entry) { return entry.second->state() == state; }));
}

int PoolLoop::usable() const {
  return count(State::kStarting) + count(State::kIdle) + count(State::kBusy);
}

void PoolLoop::start_missing_workers() {
  if (closing_) return;
  const int64_t needed = count(State::kBusy) + queue_.waiting();
  wanted_ = std::max<int>(wanted_, static_cast<int>(std::min<int64_t>(options_.workers, needed)));
  // After a failed start one at a time, so that a command that cannot start is not started many times.
  while (usable() < wanted_ && Clock::now() >= no_start_before_ &&
         (start_failures_ == 0 || count(State::kStarting) == 0)) {
    try {
      start_worker();
    } catch (const std::exception& error) {
      start_failed(error.what(), true);
    }
  }
}

void PoolLoop::start_worker() {
  auto worker = std::make_unique<PoolWorker>(options_, next_serial_++);
  watch(worker->socket(), *worker, Source::kSocket, EPOLLIN);
  watch(worker->pidfd(), *worker, Source::kProcess, EPOLLIN);
  if (worker->errors_fd() >= 0) watch(worker->errors_fd(), *worker, Source::kErrors, EPOLLIN);
  ++counts_.workers_started;
  const int64_t serial = worker->serial();
  workers_.emplace(serial, std::move(worker));
}

void PoolLoop::start_failed(const std::string& message, bool certain) {
  ++start_failures_;
  const auto back_off = kFirstBackOff * (1 << std::min(start_failures_ - 1, 10));
  no_start_before_ = Clock::now() + std::min<milliseconds>(back_off, kLongestBackOff);
  if (!certain && start_failures_ < kUncertainFailures) return;
  if (count(State::kIdle) + count(State::kBusy) > 0) return;
  {
    const std::lock_guard lock(mutex_);
    ready_ = false;
    start_error_ = message;
  }
  news_.notify_all();
  for (PoolJob& job : queue_.PopAll()) {
    const int attempts = job.attempts;
    finish(std::move(job), {Outcome::Kind::kStartFailed, {}, message, {}, attempts});
  }
}

PoolWorker* PoolLoop::find_idle() {
  // The one that waits least: the others may become idle for long, and be ended.
  PoolWorker* found = nullptr;
  for (auto& [serial, worker] : workers_)
    if (worker->state() == State::kIdle && (!found || worker->deadline() > found->deadline()))
      found = worker.get();
  return found;
}

void PoolLoop::dispatch() {
  if (closing_) return;
  for (PoolWorker* worker = find_idle(); worker; worker = find_idle()) {
    if (worker->spoke_unasked()) {  // it would be taken for the answer
      kill(*worker, Outcome::Kind::kWorkerDied, {});
      continue;
    }
    std::optional<PoolJob> job = queue_.Pop();
    if (!job) return;
    ++job->attempts;
    try {
      worker->Give(std::move(*job));
      if (worker->wants_to_write()) watch_writes(*worker);
    } catch (const Error& error) {  // its figures cannot be read: it is not fit for a job
      kill(*worker, Outcome::Kind::kWorkerDied, error.what());
    }
  }
}

void PoolLoop::finish(PoolJob job, Outcome outcome) {
  ++(outcome.kind == Outcome::Kind::kAnswer ? counts_.answered : counts_.failed);
  finished_.emplace_back(std::move(job), std::move(outcome));
}

void PoolLoop::publish_and_deliver() {
  {
    const std::lock_guard lock(mutex_);
    published_ = counts_;
    published_.workers_now = usable();
    pids_.clear();
    for (const auto& [serial, worker] : workers_) pids_.push_back(worker->pid());
  }
  for (auto& [job, outcome] : std::exchange(finished_, {})) {
    job.request = std::string();
    job.done(std::move(outcome));
  }
}

PoolStatistics PoolLoop::Statistics() const {
  const std::lock_guard lock(mutex_);
  PoolStatistics statistics = published_;
  statistics.submitted = queue_.submitted();
  statistics.waiting_now = queue_.waiting();
  return statistics;
}

std::vector<int> PoolLoop::Pids() const {
  const std::lock_guard lock(mutex_);
  return pids_;
}

bool PoolLoop::WaitReady(milliseconds timeout) {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, timeout, [&] { return ready_ || ended_ || !start_error_.empty(); });
  if (ended_) throw Error(ErrorCode::kCancelled, "pool: it is closed");
  if (!ready_ && !start_error_.empty()) throw Error(ErrorCode::kIo, start_error_);
  return ready_;
}

int PoolLoop::timeout_ms() const {
  if (closing_ && workers_.empty()) return 0;
  const auto now = Clock::now();
  auto next = Clock::time_point::max();
  bool ticking = false;
  for (const auto& [serial, worker] : workers_) {
    next = std::min(next, worker->deadline());
    ticking |= worker->state() == State::kBusy || worker->state() == State::kStarting;
  }
  if (ticking) next = std::min(next, next_tick_);
  if (!closing_ && usable() < wanted_ && (start_failures_ == 0 || count(State::kStarting) == 0))
    next = std::min(next, no_start_before_);
  if (next == Clock::time_point::max()) return -1;
  return static_cast<int>(std::clamp<int64_t>(
      std::chrono::duration_cast<milliseconds>(next - now + milliseconds(1)).count(), 0, 60'000));
}

void PoolLoop::wait_for_events() {
  epoll_event events[16];
  const int ready = epoll_wait(epoll_.get(), events, 16, timeout_ms());
  for (int i = 0; i < ready; ++i) on_event(events[i].data.u64, events[i].events);
}

void PoolLoop::on_deadlines() {
  const auto now = Clock::now();
  const bool tick = now >= next_tick_;
  if (tick) next_tick_ = now + kTick;
  std::vector<PoolWorker*> workers;  // reaping removes them from the map
  for (auto& [serial, worker] : workers_) workers.push_back(worker.get());
  for (PoolWorker* worker : workers) {
    if (tick && worker->over_cpu_time()) {
      kill(*worker, Outcome::Kind::kTimeout,
           fmt::format("reached the job's CPU time of {} ms; its worker was killed",
                       options_.limits.cpu_time.count()));
    }
    const bool at_work = worker->state() == State::kBusy || worker->state() == State::kStarting;
    if (tick && at_work && worker->Look()) died(*worker);
    if (now >= worker->deadline()) on_deadline(*worker);
  }
}

}  // namespace plimsoll
