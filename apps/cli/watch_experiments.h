// Experiments that turn a guess into a finding. Each one changes the process or its cgroup: only on request.
#pragma once

#include <plimsoll/observe.h>

#include <string>

#include "watch_history.h"

namespace plimsoll::cli {

// Throws kNotImplemented if there is no gdb to call malloc_trim with.
void require_gdb();
// glibc's malloc_trim in another process, called through gdb while no frame of its first thread is in the
// allocator. What cannot be done is said in the finding.
Experiment trim(Observer& observer, int pid);
// Gives back what the kernel can of the cgroup in `directory`, which is one that we made.
Experiment reclaim(Observer& observer, const std::string& directory);

}  // namespace plimsoll::cli
