// The first process of the job's PID namespace.
//
// A job that were process 1 itself would not die of abort() or TERM (the kernel shields process 1 from every
// signal it does not handle) and would have to reap the orphans of its children. So the process that clone3
// made becomes an init of 86 bytes of code, and the job its only child, process 2. The init reaps, and when
// the job has ended it writes the job's wait status to a pipe and exits; the kernel then kills whatever is
// left in the namespace. Killing the init kills the job and everything it started, however it hid.
#pragma once

#include <string>

namespace plimsoll::sandbox {

constexpr int kJobPid = 2;  // in its own namespace

// The init as an ELF program, for a memfd.
std::string init_image();

// In the child, before it loses its capabilities: the init keeps one, and therefore the kernel lets no
// process without it read the init's memory, descriptors or environment, which until exec are the caller's.
// Returns 0 in another process, the job; the process that called becomes the init, with `status_pipe` as its
// only descriptor. Or returns a negative errno.
int become_init(const std::string& image, int status_pipe) noexcept;

}  // namespace plimsoll::sandbox
