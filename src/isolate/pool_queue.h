// Between those who submit jobs and the pool's thread: the waiting jobs, the cancellations, the end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "plimsoll/isolate.h"

namespace plimsoll {

struct PoolJob {
  int64_t id = 0;
  std::string request;
  JobOptions options;
  std::function<void(Outcome)> done;
  int attempts = 0;     // times a worker had the whole request
  int undelivered = 0;  // times a worker ended before it had
};

// Thread-safe. The pool's thread sleeps on wake_fd(), which becomes readable whenever there is news.
class PoolQueue {
 public:
  explicit PoolQueue(int64_t capacity);
  PoolQueue(const PoolQueue&) = delete;
  PoolQueue& operator=(const PoolQueue&) = delete;

  // For callers. Takes the job and gives it a number. If there is no room within `patience` (nothing: for
  // ever) it returns nothing, and the job is left as it is. The pool's own thread never waits.
  std::optional<int64_t> Push(PoolJob& job, std::optional<std::chrono::milliseconds> patience);
  void Cancel(int64_t id);
  void Close();

  // For the pool's thread.
  void OwnedByThisThread();
  int wake_fd() const noexcept { return wake_fd_.get(); }
  void ClearWake() noexcept;
  bool closed() const;
  std::optional<PoolJob> Pop();
  void PushFront(PoolJob job);  // regardless of the capacity: it was here before
  std::vector<PoolJob> PopAll();
  struct Cancelled {
    std::vector<PoolJob> waiting;
    std::vector<int64_t> others;  // they run, or are over
  };
  Cancelled TakeCancelled();
  int64_t waiting() const;
  int64_t submitted() const;

 private:
  void wake() noexcept;

  const size_t capacity_;
  Descriptor wake_fd_;
  mutable std::mutex mutex_;
  std::condition_variable room_;
  std::deque<PoolJob> jobs_;
  std::vector<int64_t> cancelled_;
  int64_t next_id_ = 1;
  bool closed_ = false;
  std::optional<std::thread::id> owner_;
};

}  // namespace plimsoll
