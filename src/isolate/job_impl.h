// The life of one job: started, watched, ended, cleaned up, reported.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>

#include "isolate/enclosure.h"
#include "isolate/group.h"
#include "isolate/memory_meter.h"
#include "isolate/output.h"
#include "isolate/remains.h"
#include "isolate/sandbox.h"
#include "plimsoll/isolate.h"

namespace plimsoll {

struct Job::Impl {
  using Clock = std::chrono::steady_clock;

  // `guarded`: somebody cleans up if we are killed.
  Impl(const Command& command, const Limits& limits, bool guarded);
  ~Impl();

  // True when the first process has ended and what it wrote is passed on. False: `deadline` has passed.
  bool wait_until(Clock::time_point deadline);
  // Readable when the job itself has ended.
  int ended_descriptor() const noexcept;
  Completed finish();
  void cancel(bool at_once) noexcept;
  Receipt snapshot();

  const Limits limits;
  const int owner = ::getpid();
  Completed completed;
  OutputPump pump;
  std::unique_ptr<Sandbox> sandbox;      // null: none
  std::unique_ptr<Enclosure> enclosure;  // null: none
  std::mutex group_mutex;                // Kill comes from any thread
  Group group;
  MemoryMeter meter;
  ThrashWatch thrash_watch;
  Descriptor wake;  // an eventfd: somebody called Kill or Cancel
  Spawned process;
  Clock::time_point started;
  const bool guarded;
  RemainsWatch remains;
  const bool cleans_leftovers;
  bool finished = false;

 private:
  void start(const Command& command);
  void launch(SpawnRequest& request, const Command& command);
  void refuse_if_unheld() const;
  Confinement* confinement() const noexcept;
  void watch(Clock::time_point now);
  bool is_over(Clock::time_point now);
  void check_limits(Clock::time_point now);
  bool is_over_memory(Clock::time_point now);
  void check_cancelled(Clock::time_point now);
  Clock::time_point next_look(Clock::time_point deadline) const;
  void end(Ending why, Clock::time_point now, bool at_once);
  void end_keeper();
  bool ends_within(std::chrono::milliseconds patience) const noexcept;
  void reap();
  void kill_those_who_left();
  void let_go();
  void empty_group();
  void settle();
  void report_doubts();
  double cpu_ms() const;

  std::atomic<int> cancelled{0};  // 1: Cancel, 2 and more: Kill, or Cancel again
  std::optional<Ending> ending_;
  bool first_is_gone_ = false;
  bool thrashing_ = false;
  bool given_up_ = false;  // it does not die
  bool somebody_left_ = false;
  int64_t job_start_time_ = 0;
  std::optional<Clock::time_point> kill_decided_, kill_at_, killed_at_;
  Clock::time_point next_cpu_look_, look_for_kill_until_;
  double reaped_cpu_ms_ = 0;
  int64_t reaped_peak_bytes_ = 0;
  int status_ = 0;
  bool status_known_ = true;
};

}  // namespace plimsoll
