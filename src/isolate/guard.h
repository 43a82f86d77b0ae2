// What cleans up if this process is killed: a shell that waits for our end of a pipe to close, which the
// kernel does however we die, then kills our jobs and removes their cgroups. One for each process that starts
// jobs, started with the first of them; it is no child of ours, and ends with us.
#pragma once

#include <memory>

#include "isolate/surroundings.h"

namespace plimsoll {

// Starts it if it does not run, and tells it where our jobs' cgroups are. False: there is none (no /bin/sh).
// Thread-safe.
bool ensure_guard(const std::shared_ptr<const Surroundings>& around) noexcept;

// For jobs that no cgroup holds together: their sessions, while they run.
void tell_guard_of_session(int session, bool runs) noexcept;

}  // namespace plimsoll
