#include "isolate/clone.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace plimsoll {
namespace {

#if defined(__x86_64__)
// In the child the registers are the parent's, only the stack is new: what it needs waits in registers that
// system calls keep.
long clone3_call(clone_args* arguments, int (*child)(void*), void* argument) noexcept {
  long result;
  register int (*kept_child)(void*) __asm__("r12") = child;
  register void* kept_argument __asm__("r13") = argument;
  __asm__ volatile(
      "syscall\n\t"
      "testq %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xorl %%ebp, %%ebp\n\t"
      "movq %[argument], %%rdi\n\t"
      "callq *%[child]\n\t"
      "movl %%eax, %%edi\n\t"
      "movl %[exit], %%eax\n\t"
      "syscall\n\t"
      "hlt\n"
      "1:\n\t"
      : "=a"(result)
      : "a"(SYS_clone3), "D"(arguments), "S"(sizeof(clone_args)), [child] "r"(kept_child),
        [argument] "r"(kept_argument), [exit] "i"(SYS_exit_group)
      : "rcx", "r11", "memory", "cc");
  return result;
}
#elif defined(__aarch64__)
long clone3_call(clone_args* arguments, int (*child)(void*), void* argument) noexcept {
  register long x0 __asm__("x0") = reinterpret_cast<long>(arguments);
  register long x1 __asm__("x1") = sizeof(clone_args);
  register long x8 __asm__("x8") = SYS_clone3;
  register int (*kept_child)(void*) __asm__("x19") = child;
  register void* kept_argument __asm__("x20") = argument;
  __asm__ volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, xzr\n\t"
      "mov x0, %[argument]\n\t"
      "blr %[child]\n\t"
      "mov x8, %[exit]\n\t"
      "svc #0\n"
      "1:\n\t"
      : "+r"(x0)
      : "r"(x1), "r"(x8), [child] "r"(kept_child), [argument] "r"(kept_argument), [exit] "i"(SYS_exit_group)
      : "memory", "cc", "x30");
  return x0;
}
#else
long clone3_call(clone_args*, int (*)(void*), void*) noexcept {
  return -ENOSYS;
}
#endif

// For kernels before 5.5, and containers that refuse clone3.
int clone_classic(const CloneRequest& request, int& pidfd) noexcept {
  char* top = static_cast<char*>(request.stack) + request.stack_size;
  const int flags =
      static_cast<int>(request.flags) | CLONE_VM | CLONE_VFORK | static_cast<int>(CLONE_PIDFD) | SIGCHLD;
  const int pid = ::clone(request.child, top, flags, request.argument, &pidfd);
  return pid < 0 ? -errno : pid;
}

}  // namespace

int clone_child(const CloneRequest& request, int& pidfd) noexcept {
  clone_args arguments = {};
  arguments.flags = request.flags | CLONE_VM | CLONE_VFORK | CLONE_PIDFD | CLONE_CLEAR_SIGHAND;
  arguments.pidfd = reinterpret_cast<uint64_t>(&pidfd);
  arguments.exit_signal = SIGCHLD;
  arguments.stack = reinterpret_cast<uint64_t>(request.stack);
  arguments.stack_size = request.stack_size;
  if (request.cgroup_directory >= 0) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = static_cast<uint64_t>(request.cgroup_directory);
  }
  const long result = clone3_call(&arguments, request.child, request.argument);
  const bool unknown = result == -ENOSYS || result == -EINVAL || result == -EPERM;
  if (unknown && request.cgroup_directory < 0) return clone_classic(request, pidfd);
  return static_cast<int>(result);
}

bool clone_into_cgroup_supported() noexcept {
  static const bool supported = [] {
    clone_args arguments = {};
    arguments.flags = CLONE_VM | CLONE_VFORK | CLONE_CLEAR_SIGHAND | CLONE_INTO_CGROUP;
    arguments.cgroup = INT32_MAX;  // no descriptor has that number: who knows the flag says so
    return clone3_call(&arguments, nullptr, nullptr) == -EBADF;
  }();
  return supported;
}

}  // namespace plimsoll
