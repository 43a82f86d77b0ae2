#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace plimsoll::kernels {

using TaskFunction = void (*)(void* function, int64_t task);
void run_tasks(int threads, int64_t tasks, TaskFunction call, void* function);

// Calls f(task) once for every task in [0, tasks), on at most `threads` threads, and returns when all are
// done. One thread or one task runs inline. Tasks are cut into parts by (threads, tasks) alone; those of a
// part run in order, one after the other. f must not throw.
template <typename F>
void parallel_for(int threads, int64_t tasks, F&& f) {
  // By address: inlined, the loops in f would be compiled twice, with threads and without.
  using Function = std::remove_reference_t<F>;
  run_tasks(
      threads, tasks, [](void* function, int64_t task) { (*static_cast<Function*>(function))(task); },
      const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

}  // namespace plimsoll::kernels
