// RunOptions: how one run may end early.
//
// A handle; copies share the terminate flag. SetTerminate may be called from any thread while a run
// is under way; everything else belongs to the thread that prepares the run.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

namespace plimsoll {

class RunOptions {
 public:
  // The run stops before its next operator with kCancelled.
  RunOptions& SetTerminate() {
    terminate_->store(true);
    return *this;
  }
  RunOptions& UnsetTerminate() {
    terminate_->store(false);
    return *this;
  }
  // The run stops before its next operator with kDeadlineExceeded once `deadline` has passed.
  RunOptions& SetDeadline(std::chrono::steady_clock::time_point deadline) {
    deadline_ = deadline;
    return *this;
  }
  // A line for this run's own memory (planned, dynamic, scratch, bound), below the session's; 0: none.
  RunOptions& SetMemoryLimit(int64_t bytes) {
    memory_limit_bytes_ = bytes;
    return *this;
  }

  // Asked before every operator, on the thread of the run: true stops it with kCancelled.
  RunOptions& SetInterruptCheck(std::function<bool()> interrupted) {
    interrupted_ = std::move(interrupted);
    return *this;
  }

  bool interrupted() const { return interrupted_ && interrupted_(); }
  bool terminate() const { return terminate_->load(std::memory_order_relaxed); }
  std::optional<std::chrono::steady_clock::time_point> deadline() const { return deadline_; }
  int64_t memory_limit_bytes() const { return memory_limit_bytes_; }

 private:
  std::shared_ptr<std::atomic<bool>> terminate_ = std::make_shared<std::atomic<bool>>(false);
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  int64_t memory_limit_bytes_ = 0;
  std::function<bool()> interrupted_;
};

}  // namespace plimsoll
