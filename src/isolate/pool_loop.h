// What the pool's thread does: starts workers, gives them jobs, reads their answers, ends them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "isolate/pool_queue.h"
#include "isolate/pool_worker.h"
#include "plimsoll/isolate.h"

namespace plimsoll {

class PoolLoop {
 public:
  PoolLoop(PoolOptions options, PoolQueue& queue);
  PoolLoop(const PoolLoop&) = delete;
  PoolLoop& operator=(const PoolLoop&) = delete;

  // Until the queue is closed and everything is given back. `first` learns whether the first worker could be
  // started; if not, nothing was.
  void Run(std::promise<void>& first);

  // From any thread.
  PoolStatistics Statistics() const;
  std::vector<int> Pids() const;
  bool WaitReady(std::chrono::milliseconds timeout);

 private:
  using Clock = PoolWorker::Clock;
  using State = PoolWorker::State;
  enum class Source : uint8_t { kWake, kSocket, kErrors, kProcess };

  // One turn: obey, start, dispatch, tell, sleep, look.
  void turn();
  void obey_cancellations();
  void close_workers();
  void start_missing_workers();
  void start_worker();
  void dispatch();
  void publish_and_deliver();
  void wait_for_events();
  int timeout_ms() const;
  void on_deadlines();

  void on_event(uint64_t token, uint32_t events);
  void on_socket(PoolWorker& worker, uint32_t events);
  void on_process_end(PoolWorker& worker);
  PoolWorker::News read(PoolWorker& worker);
  void on_ready();
  void on_answer(PoolWorker& worker);
  void recycle_if_due(PoolWorker& worker);
  void on_deadline(PoolWorker& worker);
  void reap(PoolWorker& worker);
  void end_job(PoolWorker& worker, const Receipt& receipt);
  void ended_before_ready(PoolWorker& worker, const Receipt& receipt);
  void kill(PoolWorker& worker, Outcome::Kind reason, std::string why);
  void died(PoolWorker& worker);
  void leave(PoolWorker& worker, std::chrono::milliseconds patience);
  void start_failed(const std::string& message, bool certain);

  void watch(int descriptor, const PoolWorker& worker, Source source, uint32_t events);
  void watch_writes(const PoolWorker& worker);
  void unwatch(int descriptor) noexcept;
  void finish(PoolJob job, Outcome outcome);
  PoolWorker* find_idle();
  int count(State state) const;
  int usable() const;  // starting, idle or busy

  const PoolOptions options_;
  PoolQueue& queue_;
  Descriptor epoll_;
  std::map<int64_t, std::unique_ptr<PoolWorker>> workers_;  // by serial number
  int64_t next_serial_ = 1;
  int wanted_;  // workers that should be alive: fewer than options_.workers after idleness
  bool closing_ = false;
  int start_failures_ = 0;  // one after the other
  Clock::time_point no_start_before_{};
  Clock::time_point next_tick_{};
  PoolStatistics counts_;
  std::vector<std::pair<PoolJob, Outcome>> finished_;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable news_;
  PoolStatistics published_;
  std::vector<int> pids_;
  bool ready_ = false;       // a worker is warm
  bool ended_ = false;       // Run is over
  std::string start_error_;  // why workers cannot start; empty: they can, or nobody knows yet
};

}  // namespace plimsoll
