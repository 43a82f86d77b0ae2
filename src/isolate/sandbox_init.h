// The first process of the job's PID namespace.
//
// A job that were process 1 itself would not die of abort() or TERM (the kernel shields process 1 from every
// signal it does not handle) and would have to reap the orphans of its children. So the process that clone3
// made becomes an init of some hundred bytes of code, and the job its only child, process 2. The init reaps,
// and when the job has ended it writes the job's wait status to a pipe and exits; the kernel then kills
// whatever is left in the namespace. Killing the init kills the job and everything it started, however it
// hid.
#pragma once

#include <cstdint>
#include <string>

namespace plimsoll::sandbox {

constexpr int kJobPid = 2;  // in its own namespace

// The init as an ELF program, for a memfd. `stays`: when the job has ended it goes on reaping until it has no
// children left, for where it is no namespace's first process but a subreaper.
std::string init_image(bool stays);

// Where the init keeps the job's number until it has a memory of its own.
struct InitWord {
  int64_t at = 0;  // in the image
  int32_t job = 0;
};

// In the child. Returns 0 in another process, the job; the process that called becomes the init, with
// `status_pipe` as its only descriptor. Or returns a negative errno. `word` lies in the
// caller's memory, not on the stack, which the job uses too.
// `shielded`: call it before the capabilities are lost; the init keeps one, and therefore the kernel lets no
// process without it read the init's memory, descriptors or environment, which until exec are the caller's.
int become_init(const std::string& image, InitWord* word, int status_pipe, bool shielded) noexcept;

}  // namespace plimsoll::sandbox
