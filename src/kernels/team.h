// Threads that share the loops of one calling thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/parallel.h"

namespace plimsoll::kernels {

// Belongs to one thread, which calls run() and takes part in it; makes its other threads when they are first
// needed and ends them with itself. Who waits looks for a moment (kWatch) and then sleeps: loops that follow
// each other find everybody awake, and a machine that is busy with other things is not kept busier.
class Team {
 public:
  Team();
  Team(const Team&) = delete;
  ~Team();

  // Calls call(function, task) for every task in [0, tasks); thread i of n has the i-th part of them, in
  // order. A part that its thread has not begun when the caller is done with its own is the caller's. Fewer
  // threads than asked for where the system gives no more.
  void run(int threads, int64_t tasks, TaskFunction call, void* function);

  // That of this thread; none inside of run(): loops in loops are not divided again.
  static Team* of_this_thread();

 private:
  struct Worker;
  struct Loop {
    int threads = 1;
    int64_t tasks = 0;
    TaskFunction call = nullptr;
    void* function = nullptr;
    void run_part(int part) const;
  };
  void grow(size_t workers) noexcept;

  Loop loop_;
  std::atomic<int> at_work_{0};  // parts but the caller's that are not done
  std::vector<std::unique_ptr<Worker>> workers_;
  const int forks_;  // of the process when it was made: in a fork's child its threads do not exist
};

}  // namespace plimsoll::kernels
