// Work of the engine without the interpreter's lock.
//
// On the main thread a run looks for signals twenty times a second: Ctrl-C stops it, and what the handler
// raised is what the caller gets. A thread that wants the lock back when the interpreter is at its end never
// gets it, and sleeps until the process is over.
#pragma once

#include <plimsoll/run_options.h>
#include <pybind11/pybind11.h>

#include <chrono>
#include <exception>
#include <utility>

namespace plimsoll::bindings {

// How often this process and its ancestors since the import were forked.
unsigned fork_generation();
void watch_forks();

class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  static bool on_main_thread();
  // True if a handler of a signal raised. Only on the main thread; at most every 50 ms.
  bool look_for_signals();
  bool raised() const { return raised_; }
  void lock();

 private:
  PyThreadState* state_;
  std::chrono::steady_clock::time_point next_look_ = std::chrono::steady_clock::now() + kBetweenLooks;
  bool raised_ = false;

  static constexpr std::chrono::milliseconds kBetweenLooks{50};
};

// Calls work(options), where `options`, a copy of what is given, stop for signals.
template <typename Work>
void unlocked_run(RunOptions options, Work&& work) {
  std::exception_ptr error;
  Unlocked unlocked;
  try {
    if (Unlocked::on_main_thread())
      options.SetInterruptCheck([&unlocked] { return unlocked.look_for_signals(); });
    work(std::as_const(options));
  } catch (...) {
    error = std::current_exception();
  }
  unlocked.lock();
  if (unlocked.raised()) throw pybind11::error_already_set();
  if (error) std::rethrow_exception(error);
}

// The same for work that cannot be stopped: signals wait for its end.
template <typename Work>
void unlocked(Work&& work) {
  std::exception_ptr error;
  Unlocked unlocked;
  try {
    work();
  } catch (...) {
    error = std::current_exception();
  }
  unlocked.lock();
  if (error) std::rethrow_exception(error);
}

}  // namespace plimsoll::bindings
