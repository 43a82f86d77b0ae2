// Experiments that turn a guess into a finding. Each one changes the process or its cgroup: only on request.
#pragma once

#include <plimsoll/observe.h>

#include <string>

#include "watch_history.h"

namespace plimsoll::cli {

// glibc's malloc_trim in the process itself (watch_trim.h). What cannot be done is said in the finding.
Experiment trim(Observer& observer, int pid);
// Gives back what the kernel can of the cgroup in `directory`, which is one that we made.
Experiment reclaim(Observer& observer, const std::string& directory);

}  // namespace plimsoll::cli
