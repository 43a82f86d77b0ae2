// What can be had is found out by trying: a container that forbids user namespaces looks no different from
// one that allows them until one tries.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/fail.h"
#include "isolate/clone.h"
#include "isolate/enclosure.h"

namespace plimsoll {
namespace {

constexpr size_t kStackBytes = 64 << 10;

struct Trial {
  const Enclosure* enclosure = nullptr;
  SandboxFailure failure;
};

int run_trial(void* argument) noexcept {
  Trial& trial = *static_cast<Trial*>(argument);
  trial.failure = trial.enclosure->apply();
  return trial.failure.error == 0 ? 0 : 1;
}

// Empty: it works.
std::string try_enclosure(Enclosure& enclosure) {
  Trial trial{&enclosure, {}};
  std::string stack(kStackBytes, '\0');
  CloneRequest request;
  request.flags = enclosure.clone_flags();
  request.child = run_trial;
  request.argument = &trial;
  request.stack = stack.data();
  request.stack_size = stack.size() & ~size_t{15};
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  int pidfd = -1;
  const int pid = clone_child(request, pidfd);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return std::strerror(-pid);
  const Descriptor held(pidfd);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  enclosure.started();
  if (trial.failure.error != 0)
    return fmt::format("{}{}: {}", trial.failure.step, trial.failure.path,
                       std::strerror(trial.failure.error));
  return enclosure.job_status() == 0 ? "" : "its init did not run";
}

bool is_kernel_at_least(int major, int minor) {
  utsname name = {};
  if (::uname(&name) != 0) return false;
  char* rest = nullptr;
  const long found = std::strtol(name.release, &rest, 10);
  const long below = *rest == '.' ? std::strtol(rest + 1, nullptr, 10) : 0;
  return found > major || (found == major && below >= minor);
}

EnclosureSupport probe() {
  EnclosureSupport support;
  for (const bool user : {false, true}) {
    if (!user && ::geteuid() != 0) continue;
    Enclosure enclosure(
        {.user = user, .processes = true, .read_only_cgroups = true, .memory_bytes = int64_t{1} << 20});
    support.why_not = try_enclosure(enclosure);
    if (!support.why_not.empty()) continue;
    support.namespaces = true;
    support.user = user;
    support.bounds_shared_memory = !enclosure.lacks_shared_memory() && !enclosure.lacks_system_v();
    support.counts_tasks = user && is_kernel_at_least(5, 14);
    break;
  }
  return support;
}

}  // namespace

const EnclosureSupport& enclosure_support() {
  static const EnclosureSupport support = probe();
  return support;
}

}  // namespace plimsoll
