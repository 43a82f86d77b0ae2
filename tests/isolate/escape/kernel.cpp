#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "attempts.h"

namespace escape {
namespace {

bool load_bpf(const Arguments&) {
  bpf_attr attributes = {};
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = 4;
  attributes.value_size = 4;
  attributes.max_entries = 1;
  return opened(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof(attributes)));
}
bool open_performance_counter(const Arguments&) {
  perf_event_attr attributes = {};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.size = sizeof(attributes);
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  return opened(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
}
bool use_keys(const Arguments&) {
  return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1) >= 0;
}
bool add_key(const Arguments&) {
  return syscall(SYS_add_key, "user", "plimsoll-test", "x", 1, KEY_SPEC_PROCESS_KEYRING) >= 0;
}
bool set_up_io_uring(const Arguments&) {
  char parameters[120] = {};
  return opened(syscall(SYS_io_uring_setup, 1, parameters));
}
bool open_user_fault(const Arguments&) {
  return opened(syscall(SYS_userfaultfd, O_CLOEXEC | 1));
}
bool change_personality(const Arguments&) {
  return personality(ADDR_NO_RANDOMIZE) >= 0;
}

// These check the right to do it before they look at arguments that make no sense.
bool reboot(const Arguments&) {
  return passed_permission(syscall(SYS_reboot, 0, 0, 0, nullptr));
}
bool load_module(const Arguments&) {
  return passed_permission(syscall(SYS_init_module, nullptr, 0, nullptr));
}
bool load_kernel(const Arguments&) {
  return passed_permission(syscall(SYS_kexec_load, 0, 0, nullptr, ~0UL));
}
bool swap_on(const Arguments&) {
  return passed_permission(syscall(SYS_swapon, "/nowhere", 0));
}
bool account(const Arguments&) {
  return passed_permission(syscall(SYS_acct, "/nowhere/at/all"));
}
bool set_host_name(const Arguments&) {
  return passed_permission(syscall(SYS_sethostname, "x", -1));
}
bool read_kernel_log(const Arguments&) {
  char text[16];
  return syscall(SYS_syslog, 3, text, sizeof(text)) >= 0;
}

bool raise_capabilities(const Arguments&) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  if ((data[0].effective | data[0].permitted | data[1].effective | data[1].permitted) != 0) return true;
  data[0].effective = data[0].permitted = 1U << CAP_SYS_ADMIN;
  return syscall(SYS_capset, &header, data) == 0;
}
bool become_another_user(const Arguments&) {
  return setresuid(12345, 12345, 12345) == 0;
}
bool run_setuid_program(const Arguments& a) {  // PROGRAM: a copy of this one, setuid to another user
  execl(a[0].c_str(), a[0].c_str(), "am_another_user", std::to_string(geteuid()).c_str(), nullptr);
  return false;
}
bool am_another_user(const Arguments& a) {  // USER
  return geteuid() != static_cast<uid_t>(std::strtoul(a[0].c_str(), nullptr, 10));
}
bool dump_core(const Arguments& a) {  // [DIRECTORY]: does a crash leave one?
  const pid_t child = fork();
  if (child == 0) {
    // Asks for as much as it may have.
    rlimit limit;
    getrlimit(RLIMIT_CORE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_CORE, &limit);
    if (chdir((a.empty() ? temporary("") : a[0]).c_str()) != 0) _exit(1);
    std::abort();
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WCOREDUMP(status);
}
bool type_into_terminal(const Arguments&) {  // stdin
  const char letter = 'x';
  return ioctl(0, TIOCSTI, &letter) == 0;
}
bool old_system_calls(const Arguments&) {  // 32-bit calls, which a filter for 64-bit numbers would misread
#if defined(__x86_64__)
  long result = 20;  // getpid
  asm volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
  errno = result < 0 ? static_cast<int>(-result) : 0;
  return result > 0;
#else
  errno = ENOSYS;
  return false;
#endif
}
bool other_numbers(const Arguments&) {  // x32's numbers for the same calls, and numbers not known yet
  return syscall(0x40000000 | SYS_getpid) > 0 || passed_permission(syscall(5000));
}

// Not an escape by itself: what runs from memory is in the same sandbox.
bool run_from_memory(const Arguments& a) {  // NAME ARGUMENTS... of another attempt
  const int self = open("/proc/self/exe", O_RDONLY);
  const int memory = memfd_create("copy", MFD_CLOEXEC);
  if (self < 0 || memory < 0) return false;
  char buffer[65536];
  for (ssize_t count; (count = read(self, buffer, sizeof(buffer))) > 0;) {
    if (write(memory, buffer, static_cast<size_t>(count)) != count) return false;
  }
  std::vector<char*> arguments = {const_cast<char*>("escape")};
  for (const std::string& argument : a) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  fexecve(memory, arguments.data(), environ);
  return false;
}

}  // namespace

std::vector<Attempt> kernel_attempts() {
  return {
      {"load_bpf", load_bpf},
      {"open_performance_counter", open_performance_counter},
      {"use_keys", use_keys},
      {"add_key", add_key},
      {"set_up_io_uring", set_up_io_uring},
      {"open_user_fault", open_user_fault},
      {"change_personality", change_personality},
      {"reboot", reboot},
      {"load_module", load_module},
      {"load_kernel", load_kernel},
      {"swap_on", swap_on},
      {"account", account},
      {"set_host_name", set_host_name},
      {"read_kernel_log", read_kernel_log},
      {"raise_capabilities", raise_capabilities},
      {"become_another_user", become_another_user},
      {"run_setuid_program", run_setuid_program},
      {"am_another_user", am_another_user},
      {"dump_core", dump_core},
      {"type_into_terminal", type_into_terminal},
      {"old_system_calls", old_system_calls},
      {"other_numbers", other_numbers},
      {"run_from_memory", run_from_memory},
  };
}

}  // namespace escape
