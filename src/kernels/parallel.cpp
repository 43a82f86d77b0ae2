#include "kernels/parallel.h"

#include "kernels/team.h"

namespace plimsoll::kernels {

void run_tasks(int threads, int64_t tasks, TaskFunction call, void* function) {
  if (threads > 1 && tasks > 1) {
    if (Team* team = Team::of_this_thread()) return team->run(threads, tasks, call, function);
  }
  for (int64_t task = 0; task < tasks; ++task) call(function, task);
}

}  // namespace plimsoll::kernels
