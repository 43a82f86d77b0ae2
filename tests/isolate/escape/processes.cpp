#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "attempts.h"

namespace escape {
namespace {

int number(const std::string& text) {
  return std::atoi(text.c_str());
}
unsigned long address(const std::string& text) {
  return std::strtoul(text.c_str(), nullptr, 10);
}
std::string proc(const Arguments& a, const char* name) {
  return "/proc/" + a[0] + "/" + name;
}

// All take PID, some more. The signal is one that is ignored unless it is asked for.
bool signal_it(const Arguments& a) {
  return kill(number(a[0]), SIGURG) == 0;
}
bool signal_thread(const Arguments& a) {
  return syscall(SYS_tgkill, number(a[0]), number(a[0]), SIGURG) == 0;
}
bool signal_queue(const Arguments& a) {
  return sigqueue(number(a[0]), SIGURG, {}) == 0;
}
bool signal_descriptor(const Arguments& a) {
  const long file = syscall(SYS_pidfd_open, number(a[0]), 0);
  return file >= 0 && syscall(SYS_pidfd_send_signal, file, SIGURG, nullptr, 0) == 0;
}
bool signal_by_owner(const Arguments& a) {  // the kernel sends it when the pipe becomes readable
  int ends[2];
  if (pipe(ends) != 0 || fcntl(ends[0], F_SETOWN, number(a[0])) != 0) return false;
  return fcntl(ends[0], F_GETOWN) == number(a[0]);
}
bool trace(const Arguments& a) {
  return ptrace(PTRACE_SEIZE, number(a[0]), nullptr, nullptr) == 0;
}
bool read_memory(const Arguments& a) {  // PID ADDRESS
  char byte;
  const iovec here{&byte, 1};
  const iovec there{reinterpret_cast<void*>(address(a[1])), 1};
  return process_vm_readv(number(a[0]), &here, 1, &there, 1, 0) == 1;
}
bool write_memory(const Arguments& a) {  // PID ADDRESS
  char byte = 'x';
  const iovec here{&byte, 1};
  const iovec there{reinterpret_cast<void*>(address(a[1])), 1};
  return process_vm_writev(number(a[0]), &here, 1, &there, 1, 0) == 1;
}
bool read_memory_file(const Arguments& a) {  // PID ADDRESS
  const int file = open(proc(a, "mem").c_str(), O_RDONLY);
  char byte;
  return file >= 0 && pread(file, &byte, 1, static_cast<off_t>(address(a[1]))) == 1;
}
bool read_environment(const Arguments& a) {
  return opened(open(proc(a, "environ").c_str(), O_RDONLY));
}
bool read_command_line(const Arguments& a) {
  return opened(open(proc(a, "cmdline").c_str(), O_RDONLY));
}
bool open_descriptor(const Arguments& a) {  // PID DESCRIPTOR
  return opened(open((proc(a, "fd/") + a[1]).c_str(), O_RDONLY));
}
bool take_descriptor(const Arguments& a) {  // PID DESCRIPTOR
  const long file = syscall(SYS_pidfd_open, number(a[0]), 0);
  return file >= 0 && opened(syscall(SYS_pidfd_getfd, file, number(a[1]), 0));
}
bool compare(const Arguments& a) {
  return syscall(SYS_kcmp, getpid(), number(a[0]), KCMP_VM, 0, 0) >= 0;
}
bool change_limit(const Arguments& a) {
  rlimit limit;
  return prlimit(static_cast<pid_t>(number(a[0])), RLIMIT_NOFILE, nullptr, &limit) == 0;
}
bool change_priority(const Arguments& a) {
  const id_t pid = static_cast<id_t>(number(a[0]));
  errno = 0;
  const int now = getpriority(PRIO_PROCESS, pid);
  return errno == 0 && setpriority(PRIO_PROCESS, pid, now) == 0;
}
bool change_scheduler(const Arguments& a) {
  cpu_set_t processors;
  const pid_t pid = number(a[0]);
  return sched_getaffinity(pid, sizeof(processors), &processors) == 0 &&
         sched_setaffinity(pid, sizeof(processors), &processors) == 0;
}

// The init of the job's namespace shares the memory of whoever started it until it has called exec: nothing
// of it may be had at any time. Tries from the first moment on.
bool look_into_init(const Arguments&) {
  bool out = false;
  for (int round = 0; round < 2000 && !out; ++round) {
    for (const char* name :
         {"/proc/1/mem", "/proc/1/environ", "/proc/1/fd/0", "/proc/1/fd/3", "/proc/1/maps"}) {
      out = opened(open(name, O_RDWR)) || opened(open(name, O_RDONLY)) || out;
    }
  }
  return out;
}

}  // namespace

std::vector<Attempt> process_attempts() {
  return {
      {"signal_it", signal_it},
      {"signal_thread", signal_thread},
      {"signal_queue", signal_queue},
      {"signal_descriptor", signal_descriptor},
      {"signal_by_owner", signal_by_owner},
      {"trace", trace},
      {"read_memory", read_memory},
      {"write_memory", write_memory},
      {"read_memory_file", read_memory_file},
      {"read_environment", read_environment},
      {"read_command_line", read_command_line},
      {"open_descriptor", open_descriptor},
      {"take_descriptor", take_descriptor},
      {"compare", compare},
      {"change_limit", change_limit},
      {"change_priority", change_priority},
      {"change_scheduler", change_scheduler},
      {"look_into_init", look_into_init},
  };
}

}  // namespace escape
