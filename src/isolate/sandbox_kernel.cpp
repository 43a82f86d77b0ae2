#include "isolate/sandbox_kernel.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/fail.h"
#include "isolate/sandbox_init.h"
#include "isolate/sandbox_landlock.h"
#include "isolate/sandbox_mounts.h"
#include "isolate/sandbox_seccomp.h"
#include "isolate/sandbox_syscall.h"

namespace plimsoll::sandbox {
namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr uint64_t kMountAndPid = CLONE_NEWNS | CLONE_NEWPID;

struct Trial {
  uint64_t flags = 0;
  IdentityMap identity;
  Mounts mounts{1 << 20};
  std::string init;
  InitWord word;
  int status_pipe = -1;
  int result = 0;  // negative errno
  const char* step = "";
};

// What a sandboxed job goes through, without the job.
int run_trial(void* argument) noexcept {
  Trial& trial = *static_cast<Trial*>(argument);
  const auto succeeds = [&](const char* step, int result) {
    trial.step = step;
    trial.result = result;
    return result >= 0;
  };
  const char* path = nullptr;
  if ((trial.flags & CLONE_NEWUSER) != 0 && !succeeds("user namespace", apply_identity_map(trial.identity)))
    return 1;
  if ((trial.flags & CLONE_NEWNS) != 0 && !succeeds("mounts", trial.mounts.Apply(&path))) return 1;
  if ((trial.flags & CLONE_NEWPID) != 0 &&
      !succeeds("init", become_init(trial.init, &trial.word, trial.status_pipe, true)))
    return 1;
  return 0;
}

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Empty if namespaces of these kinds can be had; otherwise why not.
std::string try_namespaces(uint64_t flags) {
  Trial trial;
  trial.flags = flags;
  trial.identity = identity_map();
  trial.init = init_image(false);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    fail(ErrorCode::kIo, "sandbox: cannot create a pipe: {}", std::strerror(errno));
  trial.status_pipe = ends[1];
  std::vector<char> stack(kStackBytes);
  int child = -1;
  int error = 0;
  {
    const SignalsBlocked blocked;
    // Shares our memory, like vfork: nothing is copied, whatever our size.
    child = clone(run_trial, stack.data() + kStackBytes,
                  static_cast<int>(flags) | CLONE_VM | CLONE_VFORK | SIGCHLD, &trial);
    error = errno;
  }
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  close(ends[1]);
  int job_status = 0;
  const bool reported =
      (flags & CLONE_NEWPID) == 0 || read(ends[0], &job_status, sizeof(job_status)) == sizeof(int);
  close(ends[0]);
  if (child < 0) return fmt::format("clone: {}", std::strerror(error));
  if (trial.result < 0) return fmt::format("{}: {}", trial.step, std::strerror(-trial.result));
  if (status != 0 || !reported || job_status != 0) return "init: did not run";
  return "";
}

// Whatever of the kinds can be had in one way, with or without a user namespace.
void try_way(uint64_t user, KernelSupport& support) {
  const std::string error = try_namespaces(kMountAndPid | CLONE_NEWIPC | CLONE_NEWNET | user);
  uint64_t found = 0;
  if (error.empty()) {
    found = kMountAndPid | CLONE_NEWIPC | CLONE_NEWNET;
  } else {
    for (const uint64_t kind : {kMountAndPid, uint64_t{CLONE_NEWIPC}, uint64_t{CLONE_NEWNET}}) {
      if (try_namespaces(kind | user).empty()) found |= kind;
    }
  }
  if (!support.namespaces_error.empty() && found == 0) return;
  support.namespaces_error = error;
  support.namespaces = found;
  support.user_namespace = user != 0 && found != 0;
}

KernelSupport probe() {
  KernelSupport support;
  support.no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) >= 0;
  support.seccomp = seccomp_available();
  support.landlock_abi = landlock_abi();
  try_way(0, support);
  if (!support.namespaces_error.empty()) try_way(CLONE_NEWUSER, support);
  return support;
}

int write_file(const char* path, const char* text, size_t length) noexcept {
  const long file = raw_syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return static_cast<int>(file);
  const long written = raw_syscall(SYS_write, file, text, length);
  raw_syscall(SYS_close, file);
  return written < 0 ? static_cast<int>(written) : 0;
}

}  // namespace

const KernelSupport& kernel_support() {
  static const KernelSupport support = probe();
  return support;
}

IdentityMap identity_map() {
  return {fmt::format("{0} {0} 1\n", geteuid()), fmt::format("{0} {0} 1\n", getegid())};
}

int apply_identity_map(const IdentityMap& map) noexcept {
  constexpr char kDeny[] = "deny";
  int result = write_file("/proc/self/setgroups", kDeny, sizeof(kDeny) - 1);
  if (result == 0) result = write_file("/proc/self/uid_map", map.user.data(), map.user.size());
  if (result == 0) result = write_file("/proc/self/gid_map", map.group.data(), map.group.size());
  return result;
}

}  // namespace plimsoll::sandbox
