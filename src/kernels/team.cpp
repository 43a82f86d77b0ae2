#include "kernels/team.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <limits>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace plimsoll::kernels {
namespace {

using Clock = std::chrono::steady_clock;
// Longer than what runs on one thread between two loops of a model, shorter than a turn of the scheduler.
constexpr std::chrono::microseconds kWatch{100};

void pause() {
#if defined(__SSE2__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns when `value` is no longer `old`, with what it is.
int changed(const std::atomic<int>& value, int old) {
  const Clock::time_point end = Clock::now() + kWatch;
  do {
    for (int i = 0; i < 32; ++i) {
      if (const int found = value.load(std::memory_order_acquire); found != old) return found;
      pause();
    }
  } while (Clock::now() < end);
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

// How often this process, or one that it comes from, has been forked since the first call.
int forks_of_process() {
  static std::atomic<int> forks{0};
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  return forks.load(std::memory_order_relaxed);
}

thread_local bool is_in_loop = false;

}  // namespace

struct alignas(64) Team::Worker {
  static constexpr int kEnd = -1, kTaken = -2;

  Worker(Team& team, int part) : thread([&team, part, this] { serve(team, part); }) {}

  void serve(Team& team, int part) {
    is_in_loop = true;
    for (int seen = 0; (seen = changed(turn, seen)) != kEnd;) {
      if (!take(seen)) continue;  // it came too late, and may not look at the loop, which may be the next one
      team.loop_.run_part(part);
      if (team.at_work_.fetch_sub(1, std::memory_order_acq_rel) == 1) team.at_work_.notify_one();
    }
  }
  void wake(int next) {
    untaken.store(next, std::memory_order_release);
    turn.store(next, std::memory_order_release);
    turn.notify_one();
  }
  // Whether the part of this turn is the caller's to run: true for one of those who ask.
  bool take(int wanted) {
    return untaken.compare_exchange_strong(wanted, kTaken, std::memory_order_acq_rel,
                                           std::memory_order_relaxed);
  }

  std::atomic<int> turn{0};
  std::atomic<int> untaken{kTaken};  // the turn whose part nobody has begun
  std::thread thread;
};

void Team::Loop::run_part(int part) const {
  const int64_t begin = tasks * part / threads, end = tasks * (part + 1) / threads;
  for (int64_t task = begin; task < end; ++task) call(function, task);
}

Team::Team() : forks_(forks_of_process()) {}

Team::~Team() {
  if (forks_ != forks_of_process()) {  // the threads stayed with the parent
    for (auto& worker : workers_) static_cast<void>(worker.release());
    return;
  }
  for (const auto& worker : workers_) {
    worker->wake(Worker::kEnd);
    worker->thread.join();
  }
}

void Team::grow(size_t workers) noexcept {
  try {
    workers_.reserve(workers);
    while (workers_.size() < workers)
      workers_.push_back(std::make_unique<Worker>(*this, static_cast<int>(workers_.size()) + 1));
  } catch (const std::exception&) {  // no memory, or no more processes: those that are there do the work
  }
}

void Team::run(int threads, int64_t tasks, TaskFunction call, void* function) {
  const auto wanted = static_cast<size_t>(std::min<int64_t>(threads, tasks) - 1);
  if (workers_.size() < wanted) grow(wanted);
  const size_t others = std::min(wanted, workers_.size());
  loop_ = {static_cast<int>(others) + 1, tasks, call, function};
  at_work_.store(static_cast<int>(others), std::memory_order_relaxed);
  for (size_t i = 0; i < others; ++i) {
    Worker& worker = *workers_[i];
    const int turn = worker.turn.load(std::memory_order_relaxed);
    worker.wake(turn == std::numeric_limits<int>::max() ? 0 : turn + 1);
  }
  is_in_loop = true;
  loop_.run_part(0);
  // Where the machine is busy with other things, a thread may not get a processor before all this is done.
  for (size_t i = 0; i < others; ++i) {
    if (!workers_[i]->take(workers_[i]->turn.load(std::memory_order_relaxed))) continue;
    loop_.run_part(static_cast<int>(i) + 1);
    at_work_.fetch_sub(1, std::memory_order_relaxed);
  }
  is_in_loop = false;
  for (int left = at_work_.load(std::memory_order_acquire); left > 0; left = changed(at_work_, left)) {
  }
}

Team* Team::of_this_thread() {
  if (is_in_loop) return nullptr;
  thread_local std::unique_ptr<Team> team;
  if (team == nullptr || team->forks_ != forks_of_process()) team = std::make_unique<Team>();
  return team.get();
}

}  // namespace plimsoll::kernels
