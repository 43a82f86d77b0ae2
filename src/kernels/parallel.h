#pragma once

#include <cstdint>

namespace plimsoll::kernels {

// Calls f(task) once for every task in [0, tasks), on at most `threads` threads, and returns when all are
// done. One thread or one task runs inline. Which thread runs a task is fixed by (threads, tasks).
// f must not throw.
template <typename F>
void parallel_for([[maybe_unused]] int threads, int64_t tasks, F&& f) {
#ifdef _OPENMP
  if (threads > 1 && tasks > 1) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t task = 0; task < tasks; ++task) f(task);
    return;
  }
#endif
  for (int64_t task = 0; task < tasks; ++task) f(task);
}

}  // namespace plimsoll::kernels
