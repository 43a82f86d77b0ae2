#include "isolate/pool_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "base/fail.h"

namespace plimsoll {

PoolQueue::PoolQueue(int64_t capacity)
    : capacity_(static_cast<size_t>(capacity)), wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_fd_) fail(ErrorCode::kIo, "pool: no descriptor for its thread: {}", std::strerror(errno));
}

void PoolQueue::wake() noexcept {
  const uint64_t one = 1;
  // Fails only if the counter is at its maximum: then it is readable already.
  [[maybe_unused]] const ssize_t written = write(wake_fd_.get(), &one, sizeof one);
}

void PoolQueue::ClearWake() noexcept {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(wake_fd_.get(), &count, sizeof count);
}

std::optional<int64_t> PoolQueue::Push(PoolJob& job, std::optional<std::chrono::milliseconds> patience) {
  std::unique_lock lock(mutex_);
  const auto room_or_end = [&] { return jobs_.size() < capacity_ || closed_; };
  if (owner_ == std::this_thread::get_id()) patience = std::chrono::milliseconds(0);
  if (!patience) room_.wait(lock, room_or_end);
  if (patience && !room_.wait_for(lock, *patience, room_or_end)) return std::nullopt;
  if (closed_) fail(ErrorCode::kCancelled, "pool: it is closed and takes no more jobs");
  job.id = next_id_++;
  const int64_t id = job.id;
  jobs_.push_back(std::move(job));
  wake();
  return id;
}

void PoolQueue::Cancel(int64_t id) {
  const std::lock_guard lock(mutex_);
  cancelled_.push_back(id);
  wake();
}

void PoolQueue::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  room_.notify_all();
  wake();
}

void PoolQueue::OwnedByThisThread() {
  const std::lock_guard lock(mutex_);
  owner_ = std::this_thread::get_id();
}

bool PoolQueue::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

std::optional<PoolJob> PoolQueue::Pop() {
  const std::lock_guard lock(mutex_);
  if (jobs_.empty()) return std::nullopt;
  PoolJob job = std::move(jobs_.front());
  jobs_.pop_front();
  room_.notify_one();
  return job;
}

void PoolQueue::PushFront(PoolJob job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_front(std::move(job));
}

std::vector<PoolJob> PoolQueue::PopAll() {
  const std::lock_guard lock(mutex_);
  std::vector<PoolJob> all(std::make_move_iterator(jobs_.begin()), std::make_move_iterator(jobs_.end()));
  jobs_.clear();
  room_.notify_all();
  return all;
}

PoolQueue::Cancelled PoolQueue::TakeCancelled() {
  const std::lock_guard lock(mutex_);
  Cancelled cancelled;
  for (const int64_t id : std::exchange(cancelled_, {})) {
    const auto job = std::find_if(jobs_.begin(), jobs_.end(), [&](const PoolJob& j) { return j.id == id; });
    if (job == jobs_.end()) {
      cancelled.others.push_back(id);
      continue;
    }
    cancelled.waiting.push_back(std::move(*job));
    jobs_.erase(job);
  }
  if (!cancelled.waiting.empty()) room_.notify_all();
  return cancelled;
}

int64_t PoolQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(jobs_.size());
}

int64_t PoolQueue::submitted() const {
  const std::lock_guard lock(mutex_);
  return next_id_ - 1;
}

}  // namespace plimsoll
