// What this kernel, in this place and for this user, permits a sandbox to be made of.
#pragma once

#include <cstdint>
#include <string>

namespace plimsoll::sandbox {

struct KernelSupport {
  bool no_new_privs = false;
  bool seccomp = false;
  int landlock_abi = 0;  // 0: none
  // CLONE_NEW* flags. Mount and PID namespaces come together or not at all: a mount namespace without a
  // /proc of its own would show everybody's.
  uint64_t namespaces = 0;
  bool user_namespace = false;   // the others are had only within one
  std::string namespaces_error;  // why some are missing
};

// Found out by trying, once; the answer holds for the life of the process.
const KernelSupport& kernel_support();

// In the child: this user, and nobody else, exists in its new user namespace. 0 or a negative errno.
struct IdentityMap {
  std::string user;   // a line for uid_map
  std::string group;  // a line for gid_map
};
IdentityMap identity_map();
int apply_identity_map(const IdentityMap& map) noexcept;

}  // namespace plimsoll::sandbox
