// The seccomp filter: system calls that no job needs and that reach beyond it are refused.
#pragma once

#include <linux/filter.h>

#include <vector>

namespace plimsoll::sandbox {

bool seccomp_available() noexcept;

struct SeccompOptions {
  bool network = false;
  // Sockets in the file system may be connected to. True only where the job sees no file system but its own:
  // ordinary permissions are all that guards them, and Landlock does not.
  bool unix_sockets = false;
};

// A program for this machine's architecture. Calls of another (32-bit x86) end the process with SIGSYS;
// calls that are newer than this list are answered with ENOSYS, refused ones with EPERM.
std::vector<sock_filter> seccomp_program(const SeccompOptions& options);

// In the child, after no_new_privs. 0 or a negative errno.
int seccomp_apply(const std::vector<sock_filter>& program) noexcept;

}  // namespace plimsoll::sandbox
