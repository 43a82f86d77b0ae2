// glibc's malloc_trim, called in another process: the one thing here that touches what it watches.
#pragma once

#include <string>

namespace plimsoll::cli {

// Whether this build can do it at all (Linux on x86-64 with glibc).
bool can_trim();

// Stops one thread of `pid` that rests in a system call that the allocator does not make (so that it holds no
// lock of the allocator), lets it call malloc_trim(0), and puts every register back; the system call goes on.
// The other threads run on. Empty: done. Otherwise why not; then the process is as it was.
std::string trim_process(int pid);

}  // namespace plimsoll::cli
