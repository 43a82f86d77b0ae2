#include "unlocked.h"

#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace plimsoll::bindings {
namespace {

// The kernel forks processes, not objects: this is a fact of the process.
std::atomic<unsigned> generation{0};

}  // namespace

unsigned fork_generation() {
  return generation.load(std::memory_order_relaxed);
}

void watch_forks() {
  pthread_atfork(nullptr, nullptr, [] { ++generation; });
}

bool Unlocked::on_main_thread() {
  struct Known {
    unsigned generation = ~0U;
    bool main = false;
  };
  thread_local Known known;
  if (known.generation != fork_generation()) known = {fork_generation(), gettid() == getpid()};
  return known.main;
}

bool Unlocked::look_for_signals() {
  if (raised_) return true;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return false;
  next_look_ = now + kBetweenLooks;
  lock();
  raised_ = PyErr_CheckSignals() != 0;
  state_ = PyEval_SaveThread();
  return raised_;
}

void Unlocked::lock() {
  try {
    PyEval_RestoreThread(state_);
  } catch (abi::__forced_unwind&) {
    while (true) pause();  // unwinding would let go of Python's objects without the lock
  }
}

}  // namespace plimsoll::bindings
