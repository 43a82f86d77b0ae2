// The public face of a pool: a queue, and the thread that empties it.
#include <unistd.h>

#include <thread>

#include "base/fail.h"
#include "isolate/patience.h"
#include "isolate/pool_loop.h"
#include "isolate/pool_queue.h"
#include "isolate/request.h"
#include "plimsoll/isolate.h"

namespace plimsoll {
namespace {

constexpr int kMostWorkers = 4096;
constexpr int64_t kJobsPerWorker = 4;

PoolOptions checked(PoolOptions options) {
  const auto not_negative = [](int64_t value, const char* name) {
    if (value < 0) fail(ErrorCode::kInvalidArgument, "pool: {} is {}; 0 means none", name, value);
  };
  if (options.workers < 1 || options.workers > kMostWorkers)
    fail(ErrorCode::kInvalidArgument, "pool: {} workers; 1 to {} are possible", options.workers,
         kMostWorkers);
  if (options.worker.argv.empty()) fail(ErrorCode::kInvalidArgument, "pool: the worker has no command");
  not_negative(options.queue_capacity, "queue_capacity");
  not_negative(options.recycle_after_jobs, "recycle_after_jobs");
  not_negative(options.recycle_above_bytes, "recycle_above_bytes");
  not_negative(options.idle_timeout.count(), "idle_timeout");
  not_negative(options.start_timeout.count(), "start_timeout");
  not_negative(options.limits.wall_time.count(), "wall_time");
  not_negative(options.limits.cpu_time.count(), "cpu_time");
  if (options.result_bytes < 1)
    fail(ErrorCode::kInvalidArgument, "pool: result_bytes is {}; at least 1 is needed", options.result_bytes);
  for (auto* time : {&options.idle_timeout, &options.start_timeout, &options.limits.wall_time})
    *time = within_the_clock(*time);
  if (options.queue_capacity == 0) options.queue_capacity = kJobsPerWorker * options.workers;
  fill_standard_descriptors();
  return options;
}

}  // namespace

struct Pool::Impl {
  explicit Impl(const PoolOptions& options) : queue(options.queue_capacity), loop(options, queue) {
    std::promise<void> first;
    std::future<void> started = first.get_future();
    thread = std::thread([this, &first] { loop.Run(first); });
    try {
      started.get();
    } catch (...) {
      thread.join();
      throw;
    }
  }

  std::optional<int64_t> push(std::optional<std::chrono::milliseconds> patience, std::string& request,
                              JobOptions options, std::function<void(Outcome)> done) {
    if (getpid() != owner)
      fail(ErrorCode::kInvalidArgument, "pool: it belongs to process {}; make another one after fork()",
           owner);
    options.wall_time = within_the_clock(options.wall_time);
    if (patience) patience = within_the_clock(*patience);
    PoolJob job{0, std::move(request), options, std::move(done)};
    const std::optional<int64_t> id = queue.Push(job, patience);
    if (!id) request = std::move(job.request);
    return id;
  }

  [[noreturn]] void busy() const {
    fail(ErrorCode::kBusy, "pool: {} jobs are waiting, which is as many as may", queue.waiting());
  }

  const pid_t owner = getpid();
  PoolQueue queue;
  PoolLoop loop;
  std::mutex closing;
  std::thread thread;
};

Pool::Pool(PoolOptions options) : impl_(std::make_unique<Impl>(checked(std::move(options)))) {}

Pool::~Pool() {
  if (getpid() == impl_->owner) {
    Close();
  } else {  // after fork(): there is no thread to join, and the workers are the parent's
    [[maybe_unused]] const Impl* abandoned = impl_.release();
  }
}

int64_t Pool::Submit(std::string request, JobOptions options, std::function<void(Outcome)> done) {
  const std::optional<int64_t> id = impl_->push(std::nullopt, request, options, std::move(done));
  if (!id) impl_->busy();
  return *id;
}

int64_t Pool::TrySubmit(std::string request, JobOptions options, std::function<void(Outcome)> done) {
  const auto id = impl_->push(std::chrono::milliseconds(0), request, options, std::move(done));
  if (!id) impl_->busy();
  return *id;
}

std::optional<int64_t> Pool::SubmitFor(std::chrono::milliseconds timeout, std::string& request,
                                       JobOptions options, std::function<void(Outcome)> done) {
  return impl_->push(timeout, request, options, std::move(done));
}

std::future<Outcome> Pool::Submit(std::string request, JobOptions options) {
  auto promise = std::make_shared<std::promise<Outcome>>();
  std::future<Outcome> future = promise->get_future();
  Submit(std::move(request), options, [promise](Outcome outcome) { promise->set_value(std::move(outcome)); });
  return future;
}

void Pool::Cancel(int64_t id) {
  impl_->queue.Cancel(id);
}

bool Pool::WaitReady(std::chrono::milliseconds timeout) {
  return impl_->loop.WaitReady(within_the_clock(timeout));
}

PoolStatistics Pool::Statistics() const {
  return impl_->loop.Statistics();
}

std::vector<int> Pool::WorkerPids() const {
  return impl_->loop.Pids();
}

void Pool::Close() {
  if (getpid() != impl_->owner) return;
  impl_->queue.Close();
  const std::lock_guard lock(impl_->closing);
  if (impl_->thread.joinable()) impl_->thread.join();
}

}  // namespace plimsoll
