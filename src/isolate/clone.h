// clone3 onto a stack of its own: glibc has no wrapper for it, and its clone() cannot start a process inside
// a version 2 cgroup.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plimsoll {

struct CloneRequest {
  uint64_t flags = 0;             // CLONE_VM and CLONE_VFORK are added
  int cgroup_directory = -1;      // a version 2 cgroup to start in (CLONE_INTO_CGROUP)
  int (*child)(void*) = nullptr;  // its result is the exit code
  void* argument = nullptr;
  void* stack = nullptr;
  size_t stack_size = 0;
};

// The new process's id, with a descriptor of it (close-on-exec) in `pidfd`; or -errno. The calling thread
// goes on when the child has called exec or ended.
int clone_child(const CloneRequest& request, int& pidfd) noexcept;

// Whether clone_child takes a `cgroup_directory`: since Linux 5.7, unless a container refuses clone3. Asks
// the kernel once.
bool clone_into_cgroup_supported() noexcept;

}  // namespace plimsoll
