#include "kernels/parallel.h"

namespace plimsoll::kernels {

void run_tasks([[maybe_unused]] int threads, int64_t tasks, TaskFunction call, void* function) {
#ifdef _OPENMP
  if (threads > 1 && tasks > 1) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t task = 0; task < tasks; ++task) call(function, task);
    return;
  }
#endif
  for (int64_t task = 0; task < tasks; ++task) call(function, task);
}

}  // namespace plimsoll::kernels
