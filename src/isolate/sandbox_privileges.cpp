#include "isolate/sandbox_privileges.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cerrno>

#include "isolate/sandbox_syscall.h"

namespace plimsoll::sandbox {

int forbid_core_dumps() noexcept {
  // Not 0: that stops a dump to a file, but not one piped to a program outside. The kernel takes 1 for both.
  const rlimit none{1, 1};
  const rlimit zero{0, 0};
  const long result = raw_syscall(SYS_prlimit64, 0, RLIMIT_CORE, &none, nullptr);
  // The limit was 0 and may not be raised.
  return static_cast<int>(result == -EPERM ? raw_syscall(SYS_prlimit64, 0, RLIMIT_CORE, &zero, nullptr)
                                           : result);
}

int drop_capabilities() noexcept {
  // The bounding set and the bits need a capability. Who has none cannot gain any either, with no_new_privs.
  for (int capability = 0; capability < 64; ++capability) {
    if (raw_syscall(SYS_prctl, PR_CAPBSET_DROP, capability, 0, 0, 0) == -EINVAL) break;
  }
  raw_syscall(SYS_prctl, PR_SET_SECUREBITS,
              SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
                  SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
              0, 0, 0);
  raw_syscall(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  const __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  return static_cast<int>(raw_syscall(SYS_capset, &header, none));
}

int set_no_new_privileges() noexcept {
  return static_cast<int>(raw_syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

}  // namespace plimsoll::sandbox
