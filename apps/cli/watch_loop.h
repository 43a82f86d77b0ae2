// One watch from its beginning to its report.
#pragma once

#include <plimsoll/observe.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>

#include "watch_display.h"
#include "watch_history.h"
#include "watch_options.h"
#include "watch_recorder.h"
#include "watch_signals.h"
#include "watch_target.h"

namespace plimsoll::cli {

class Watch {
 public:
  explicit Watch(const WatchOptions& options);
  // Throws for what stops it from beginning. The result is the exit code.
  int run();

 private:
  void begin();
  void attach();  // a new observer for the target
  void observe(double until_seconds);
  bool wait(double until_seconds);  // false: stop
  double interval_seconds() const;  // until the next sample
  void hear_signals();
  void await_reader();
  void sample();
  void judge_now();
  void judge_at_times();
  void account_now();
  void run_experiments();
  void restart();
  void start_anew();
  void finish();
  double elapsed_seconds() const;
  void note(std::string text);
  void show(const std::function<void()>& draw);
  void add_sample(Sample sample);

  const WatchOptions& options_;
  SignalPipe signals_;
  std::unique_ptr<Display> display_;
  Target target_;
  Recorder recorder_;
  std::optional<Observer> observer_;
  WatchHistory history_;
  double began_seconds_ = 0;    // monotonic clock
  double observer_offset_ = 0;  // the observer's zero, since the watch began
  double next_judgement_ = 0, next_account_ = 0;
  int young_reads_ = 0;                 // so many more are the first of a command that we started
  bool over_ = false;                   // the process ended, or we were asked to stop
  std::exception_ptr display_problem_;  // since it is set nothing is shown
};

// Facts about this machine and `pid`, for a recording.
RecordingHeader recording_header(const WatchOptions& options, int pid);

}  // namespace plimsoll::cli
