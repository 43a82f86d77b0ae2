#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <mutex>

#include "memory/block_arena.h"
#include "memory/budget.h"
#include "plimsoll/env.h"
#include "plimsoll/error.h"

namespace plimsoll {

// What sessions keep for their next run, to be given up when another session needs the room. Any thread.
class IdleMemory {
 public:
  using Release = std::function<void()>;
  using Entry = std::list<Release>::iterator;

  Entry add(Release release) {
    const std::lock_guard lock(mutex_);
    return sessions_.insert(sessions_.end(), std::move(release));
  }
  // Afterwards the session is not called any more.
  void remove(Entry entry) noexcept {
    const std::lock_guard lock(mutex_);
    sessions_.erase(entry);
  }
  void release_all() {
    const std::lock_guard lock(mutex_);
    for (const Release& release : sessions_) release();
  }

 private:
  std::mutex mutex_;
  std::list<Release> sessions_;
};

// Tries again once with what `make_room` gives up, if the line was in the way.
template <typename Take, typename MakeRoom>
auto take_with_room(Take&& take, MakeRoom&& make_room) {
  try {
    return take();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBudgetExceeded) throw;
  }
  make_room();
  return take();
}

// A member of every Session. While one lives the instruction set stays, for which its weights are packed.
class LiveSession {
 public:
  LiveSession() {
    const std::lock_guard lock(mutex());
    ++count();
  }
  ~LiveSession() {
    const std::lock_guard lock(mutex());
    --count();
  }
  LiveSession(const LiveSession&) = delete;
  LiveSession& operator=(const LiveSession&) = delete;

  static std::mutex& mutex() {
    static std::mutex of_all;
    return of_all;
  }
  static int& count() {  // under the mutex
    static int alive = 0;
    return alive;
  }
};

struct Env::Impl {
  explicit Impl(int64_t limit_bytes)
      : shared_budget(std::make_shared<Budget>("process", limit_bytes)), budget(*shared_budget) {}
  const std::shared_ptr<Budget> shared_budget;  // arenas may outlive the Env
  Budget& budget;
  std::mutex mutex;                   // of what follows
  std::shared_ptr<BlockArena> arena;  // registered for all sessions; null: none
  int log_severity_level = 2;
  std::string log_id;
  IdleMemory idle;
  std::atomic<bool> team_busy{false};  // one run at a time uses more than its own thread
};

}  // namespace plimsoll
