#include "isolate/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/fail.h"
#include "isolate/clone.h"
#include "isolate/confinement.h"

namespace plimsoll {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;

enum class Step : int { kNone, kSession, kCgroup, kResource, kDescriptors, kDirectory, kSandbox, kExec };

const char* step_name(Step step) {
  switch (step) {
    case Step::kSession:
      return "cannot start a session of its own";
    case Step::kCgroup:
      return "cannot enter its cgroup";
    case Step::kResource:
      return "cannot set its resource limits";
    case Step::kDescriptors:
      return "cannot set up its descriptors";
    case Step::kDirectory:
      return "cannot change to its working directory";
    case Step::kSandbox:
      return "cannot shut itself in";
    default:
      return "cannot be executed";
  }
}

// A stack for the child, with a page below it that nobody may touch.
class ChildStack {
 public:
  ChildStack() {
    mapping_ = ::mmap(nullptr, kStackBytes + kGuard, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (mapping_ == MAP_FAILED)
      fail(ErrorCode::kOutOfMemory, "cannot map {} bytes of stack for a job: {}", kStackBytes,
           std::strerror(errno));
    ::mprotect(mapping_, kGuard, PROT_NONE);
  }
  ChildStack(const ChildStack&) = delete;
  ChildStack& operator=(const ChildStack&) = delete;
  ~ChildStack() { ::munmap(mapping_, kStackBytes + kGuard); }
  void* bottom() const { return static_cast<char*>(mapping_) + kGuard; }

 private:
  static constexpr size_t kGuard = 4096;
  void* mapping_;
};

// Handlers of ours must not run in the child, which shares our memory.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (const std::string& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// What the child reads and writes: it lives in the caller's memory, which waits for it.
struct ChildPlan {
  const SpawnRequest* request = nullptr;
  std::vector<char*> programs, argv, environment;
  std::vector<int> moved;  // the descriptors' places out of the way
  int first_free = 3;      // above all of the job's descriptors
  int parent = 0;
  void* second_stack = nullptr;
  // The child's report.
  Step failed = Step::kNone;
  int error = 0;
  SandboxFailure sandbox;
};

int report(ChildPlan& plan, Step step, int error) noexcept {
  plan.failed = step;
  plan.error = error;
  return 127;
}

#define PLIMSOLL_PLAIN __attribute__((no_sanitize("address", "thread", "undefined")))

// Everything ignored or handled goes back to its default, nothing stays blocked.
PLIMSOLL_PLAIN void reset_signals() noexcept {
  struct KernelAction {
    void* handler;
    unsigned long flags;
    void* restorer;
    unsigned long mask;
  };
  const KernelAction standard = {};
  for (int signal = 1; signal <= 64; ++signal)
    ::syscall(SYS_rt_sigaction, signal, &standard, nullptr, sizeof(standard.mask));
  const unsigned long none = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof(none));
}

PLIMSOLL_PLAIN int set_up_descriptors(ChildPlan& plan) noexcept {
  const auto* wanted = plan.request->descriptors.data();
  const size_t count = plan.request->descriptors.size();
  for (size_t i = 0; i < count; ++i) {
    const long moved = ::syscall(SYS_fcntl, wanted[i].first, F_DUPFD_CLOEXEC, plan.first_free);
    if (moved < 0) return errno;
    plan.moved[i] = static_cast<int>(moved);
  }
  // Whatever the job did not ask for ends with exec, not before: the sandbox still has one.
  if (::syscall(SYS_close_range, 0U, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
    for (int descriptor = 0; descriptor < 65536; ++descriptor)
      ::syscall(SYS_fcntl, descriptor, F_SETFD, FD_CLOEXEC);
  }
  for (size_t i = 0; i < count; ++i) {
    if (::syscall(SYS_dup3, plan.moved[i], wanted[i].second, 0) < 0) return errno;
  }
  return 0;
}

PLIMSOLL_PLAIN int execute(ChildPlan& plan) noexcept {
  int error = ENOENT;
  for (size_t i = 0; plan.programs[i] != nullptr; ++i) {
    ::syscall(SYS_execve, plan.programs[i], plan.argv.data(), plan.environment.data());
    const int now = errno;
    if (now == ENOENT && ::syscall(SYS_faccessat, AT_FDCWD, plan.programs[i], F_OK) == 0)
      return report(plan, Step::kExec, ELIBBAD);  // it is there: what its first line names is not
    // A directory of PATH that we may not search is passed over, as a shell does.
    const bool hidden = now == EACCES && plan.programs[1] != nullptr &&
                        ::syscall(SYS_faccessat, AT_FDCWD, plan.programs[i], F_OK) != 0;
    if (now != ENOENT && now != ENOTDIR && !hidden) error = now;
    if (now != ENOENT && now != ENOTDIR && now != EACCES) break;
  }
  return report(plan, Step::kExec, error);
}

PLIMSOLL_PLAIN int child(void* argument) noexcept {
  ChildPlan& plan = *static_cast<ChildPlan*>(argument);
  const SpawnRequest& request = *plan.request;
  if (request.dies_with_thread) {
    ::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    const long parent = ::syscall(SYS_getppid);
    if (parent != plan.parent && parent != 0) return report(plan, Step::kSession, ESRCH);
  }
  if (::syscall(SYS_setsid) < 0) return report(plan, Step::kSession, errno);
  const int* join = request.join.data();
  for (size_t i = 0; i < request.join.size(); ++i) {
    if (::syscall(SYS_write, join[i], "0", 1) < 0) return report(plan, Step::kCgroup, errno);
  }
  const auto* resources = request.resources.data();
  for (size_t i = 0; i < request.resources.size(); ++i) {
    if (::syscall(SYS_prlimit64, 0, resources[i].first, &resources[i].second, nullptr) != 0)
      return report(plan, Step::kResource, errno);
  }
  if (const int error = set_up_descriptors(plan)) return report(plan, Step::kDescriptors, error);
  if (!request.working_directory.empty() && ::syscall(SYS_chdir, request.working_directory.c_str()) != 0)
    return report(plan, Step::kDirectory, errno);
  reset_signals();
  if (request.confinement != nullptr) {
    plan.sandbox = request.confinement->apply();  // may return in another process, the job
    if (plan.sandbox.error != 0) return report(plan, Step::kSandbox, plan.sandbox.error);
  }
  if (!request.detached) return execute(plan);
  CloneRequest again;
  again.child = [](void* given) { return execute(*static_cast<ChildPlan*>(given)); };
  again.argument = argument;
  again.stack = plan.second_stack;
  again.stack_size = kStackBytes / 2;
  int pidfd = -1;
  const int pid = clone_child(again, pidfd);
  return pid < 0 ? report(plan, Step::kExec, -pid) : 0;
}

[[noreturn]] void throw_failure(const ChildPlan& plan, const SpawnRequest& request) {
  if (plan.failed == Step::kSandbox) {
    throw StartError(
        ErrorCode::kIo,
        printable(fmt::format("command '{}': {}: {} {}: {}", request.argv[0], step_name(plan.failed),
                              plan.sandbox.step, plan.sandbox.path, std::strerror(plan.error))),
        StartError::kOther);
  }
  const bool is_exec = plan.failed == Step::kExec;
  if (is_exec && plan.error == ENOENT) {
    throw StartError(ErrorCode::kIo,
                     printable(fmt::format("command '{}': not found{}", request.argv[0],
                                           request.programs.size() > 1 ? " in PATH" : "")),
                     StartError::kNotFound);
  }
  const char* reason = is_exec && plan.error == ELIBBAD
                           ? "the interpreter or loader that it names does not exist"
                       : is_exec && plan.error == ENOEXEC
                           ? "neither a program for this machine nor a script with #! in its first line"
                           : std::strerror(plan.error);
  const std::string where =
      plan.failed == Step::kDirectory ? fmt::format(" '{}'", request.working_directory) : "";
  throw StartError(ErrorCode::kIo,
                   printable(fmt::format("command '{}': {}{}: {}", request.argv[0], step_name(plan.failed),
                                         where, reason)),
                   is_exec ? StartError::kNotExecutable : StartError::kOther);
}

ChildPlan make_plan(const SpawnRequest& request) {
  ChildPlan plan;
  plan.request = &request;
  plan.programs = pointers(request.programs);
  plan.argv = pointers(request.argv);
  plan.environment = pointers(request.environment);
  plan.moved.resize(request.descriptors.size());
  for (const auto& wanted : request.descriptors)
    plan.first_free = std::max(plan.first_free, wanted.second + 1);
  plan.parent = ::getpid();
  return plan;
}

}  // namespace

Spawned spawn(const SpawnRequest& request) {
  ChildPlan plan = make_plan(request);
  const ChildStack stack;
  CloneRequest clone;
  if (request.confinement != nullptr) clone.flags = request.confinement->clone_flags();
  clone.cgroup_directory = request.cgroup_directory;
  clone.child = child;
  clone.argument = &plan;
  // The lower half is for the child's own child, if there is to be one.
  plan.second_stack = stack.bottom();
  clone.stack = static_cast<char*>(stack.bottom()) + kStackBytes / 2;
  clone.stack_size = kStackBytes / 2;
  int pidfd = -1, pid = 0;
  {
    const SignalsBlocked blocked;
    pid = clone_child(clone, pidfd);
  }
  if (pid < 0) {
    throw StartError(ErrorCode::kIo,
                     printable(fmt::format("command '{}': cannot start a process: {}", request.argv[0],
                                           std::strerror(-pid))),
                     StartError::kOther);
  }
  Spawned spawned{pid, Descriptor(pidfd)};
  if (plan.failed != Step::kNone || request.detached) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (plan.failed != Step::kNone) throw_failure(plan, request);
    spawned.pid = 0;
  }
  return spawned;
}

std::vector<std::string> program_candidates(const std::string& name) {
  if (name.find('/') != std::string::npos) return {name};
  const char* path = ::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  std::vector<std::string> candidates;
  for (;;) {
    const size_t colon = rest.find(':');
    const std::string_view directory = rest.substr(0, colon);
    candidates.push_back((directory.empty() ? "." : std::string(directory)) + "/" + name);
    if (colon == std::string_view::npos) return candidates;
    rest.remove_prefix(colon + 1);
  }
}

}  // namespace plimsoll
