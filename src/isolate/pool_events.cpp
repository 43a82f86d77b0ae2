// What happens to one worker: PoolLoop's second half.
#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <exception>

#include "base/fail.h"
#include "isolate/pool_describe.h"
#include "isolate/pool_loop.h"

namespace plimsoll {
namespace {

constexpr std::chrono::milliseconds kLeavingPatience{2000};  // from end of file to a worker's exit
constexpr int kUndelivered = 3;  // workers that may die before they have read a request

}  // namespace

void PoolLoop::watch(int descriptor, const PoolWorker& worker, Source source, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = (static_cast<uint64_t>(worker.serial()) << 2) | static_cast<uint64_t>(source);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
    fail(ErrorCode::kIo, "pool: cannot watch a worker: {}", std::strerror(errno));
}

void PoolLoop::watch_writes(const PoolWorker& worker) {
  epoll_event event{};
  event.events = worker.wants_to_write() ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.u64 = (static_cast<uint64_t>(worker.serial()) << 2) | static_cast<uint64_t>(Source::kSocket);
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, worker.socket(), &event);
}

void PoolLoop::unwatch(int descriptor) noexcept {
  if (descriptor >= 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

void PoolLoop::kill(PoolWorker& worker, Outcome::Kind reason, std::string why) {
  worker.Kill(reason, std::move(why));
  unwatch(worker.socket());
  unwatch(worker.pidfd());
}

void PoolLoop::died(PoolWorker& worker) {
  worker.Died();
  unwatch(worker.socket());
  unwatch(worker.pidfd());
}

void PoolLoop::leave(PoolWorker& worker, std::chrono::milliseconds patience) {
  worker.Leave(patience);
  unwatch(worker.socket());  // nothing it could still say matters
}

void PoolLoop::on_event(uint64_t token, uint32_t events) {
  const Source source{static_cast<uint8_t>(token & 3)};
  if (source == Source::kWake) return queue_.ClearWake();
  const auto found = workers_.find(static_cast<int64_t>(token >> 2));
  if (found == workers_.end()) return;
  PoolWorker& worker = *found->second;
  if (source == Source::kErrors) return worker.ReadErrors();
  if (worker.state() == State::kEnding) return;
  if (source == Source::kSocket) return on_socket(worker, events);
  on_process_end(worker);
}

void PoolLoop::on_process_end(PoolWorker& worker) {
  // Its last answer may still be in the socket, and it counts.
  while (worker.state() == State::kBusy || worker.state() == State::kStarting)
    if (read(worker) == PoolWorker::News::kNothing) break;
  if (worker.state() != State::kEnding) died(worker);
}

void PoolLoop::on_socket(PoolWorker& worker, uint32_t events) {
  if ((events & EPOLLOUT) && worker.wants_to_write()) {
    worker.Write();
    if (!worker.wants_to_write()) watch_writes(worker);
  }
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) read(worker);
}

PoolWorker::News PoolLoop::read(PoolWorker& worker) {
  using News = PoolWorker::News;
  News news = News::kTooLong;
  try {
    news = worker.Read();
  } catch (const std::bad_alloc&) {
    worker.text() = "is longer than there is memory here";
  }
  const bool starting = worker.state() == State::kStarting;
  switch (news) {
    case News::kNothing:
    case News::kMore:
      break;
    case News::kReady:
      on_ready();
      break;
    case News::kRefused:
      kill(worker, Outcome::Kind::kStartFailed, "a worker could not start: " + worker.text());
      break;
    case News::kAnswer:
      on_answer(worker);
      break;
    case News::kTooLong:
      kill(
          worker, starting ? Outcome::Kind::kStartFailed : Outcome::Kind::kTooLarge,
          (starting ? "a worker's first frame " : "its answer ") + worker.text() + "; the worker was killed");
      break;
    case News::kGarbage:
      kill(worker, Outcome::Kind::kWorkerDied, "its worker " + worker.text() + " and was killed");
      break;
    case News::kGone:
      died(worker);
      break;
  }
  return news;
}

void PoolLoop::on_ready() {
  start_failures_ = 0;
  no_start_before_ = {};
  {
    const std::lock_guard lock(mutex_);
    ready_ = true;
    start_error_.clear();
  }
  news_.notify_all();
}

void PoolLoop::on_answer(PoolWorker& worker) {
  std::string answer = std::move(worker.text());
  std::shared_ptr<const Attachment> attachment = worker.TakeAttachment();
  auto [job, receipt] = worker.Finish();
  const int attempts = job.attempts;
  finish(
      std::move(job),
      {Outcome::Kind::kAnswer, std::move(answer), {}, std::move(receipt), attempts, std::move(attachment)});
  try {
    recycle_if_due(worker);
  } catch (const Error& error) {
    kill(worker, Outcome::Kind::kWorkerDied, error.what());
  }
}

void PoolLoop::recycle_if_due(PoolWorker& worker) {
  if (options_.recycle_after_jobs > 0 && worker.jobs_done() >= options_.recycle_after_jobs) {
    ++counts_.recycled_by_jobs;
  } else if (options_.recycle_above_bytes > 0 && worker.MemoryBytes() > options_.recycle_above_bytes) {
    ++counts_.recycled_by_bytes;
  } else {
    return;
  }
  leave(worker, kLeavingPatience);
}

void PoolLoop::on_deadline(PoolWorker& worker) {
  switch (worker.state()) {
    case State::kStarting:
      return kill(
          worker, Outcome::Kind::kStartFailed,
          fmt::format("a worker was not ready within {} ms and was killed", options_.start_timeout.count()));
    case State::kIdle:
      ++counts_.recycled_by_idleness;
      leave(worker, kLeavingPatience);
      wanted_ = usable();
      return;
    case State::kBusy:
      return kill(worker, Outcome::Kind::kTimeout, "did not finish in time; its worker was killed");
    case State::kLeaving:
      return kill(worker, Outcome::Kind::kWorkerDied, {});
    case State::kEnding:
      return reap(worker);
  }
}

void PoolLoop::reap(PoolWorker& worker) {
  const std::optional<Completed> completed = worker.Reap();
  if (!completed) return;
  worker.ReadErrors();
  if (!worker.was_leaving() && !closing_) ++counts_.workers_died;
  if (worker.has_job()) {
    end_job(worker, completed->receipt);
  } else if (!worker.was_ready() && !closing_) {
    ended_before_ready(worker, completed->receipt);
  }
  workers_.erase(worker.serial());
}

void PoolLoop::ended_before_ready(PoolWorker& worker, const Receipt& receipt) {
  const bool ours = !worker.kill_why().empty();
  const std::string why =
      ours ? worker.kill_why() : fmt::format("a worker {} before it was ready", describe_end(receipt));
  start_failed(why + worker.last_words(), ours || receipt.ending != Ending::kSignalled);
}

void PoolLoop::end_job(PoolWorker& worker, const Receipt& receipt) {
  const bool unread = worker.request_unread();
  PoolJob job = std::move(*worker.TakeJob());
  Outcome outcome{worker.kill_reason(), {}, worker.kill_why(), worker.JobReceipt(receipt), 0, {}};
  if (outcome.kind == Outcome::Kind::kWorkerDied) {
    if (kind_of_end(receipt) == Outcome::Kind::kMemoryLimit) outcome.kind = Outcome::Kind::kMemoryLimit;
    if (outcome.message.empty())
      outcome.message = "its worker " + describe_end(receipt) + worker.last_words();
  }
  const bool again = outcome.kind == Outcome::Kind::kWorkerDied && !closing_;
  if (again && unread && job.undelivered < kUndelivered) {  // it never began
    --job.attempts;
    ++job.undelivered;
    return queue_.PushFront(std::move(job));
  }
  if (again && job.options.repeatable && job.attempts < 2) {
    ++counts_.repeated;
    return queue_.PushFront(std::move(job));
  }
  outcome.attempts = job.attempts;
  finish(std::move(job), std::move(outcome));
}

}  // namespace plimsoll
