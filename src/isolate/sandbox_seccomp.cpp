#include "isolate/sandbox_seccomp.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "isolate/sandbox_syscall.h"

namespace plimsoll::sandbox {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif
// file_setattr of Linux 6.17: from 424 on the numbers are the same on every architecture.
constexpr uint32_t kNewestKnown = 469;

// Namespaces, and children that somebody else would have to wait for.
constexpr uint32_t kRefusedCloneFlags = CLONE_PARENT | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                        CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

constexpr uint32_t kRefused[] = {
    // other processes
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_process_madvise,
    SYS_process_mrelease,
    SYS_pidfd_getfd,
    SYS_kcmp,
    SYS_migrate_pages,
    SYS_move_pages,
    // what is mounted where, by both interfaces
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    457 /* statmount */,
    458 /* listmount */,
    467 /* open_tree_attr */,
    // namespaces
    SYS_unshare,
    SYS_setns,
    // parts of the kernel that strangers have no use for and that had the most holes
    SYS_bpf,
    SYS_perf_event_open,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_userfaultfd,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_fanotify_init,
    SYS_memfd_secret,
    // files by number, which passes every path rule by
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    // the machine
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_quotactl_fd,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_syslog,
    SYS_vhangup,
    SYS_nfsservctl,
    SYS_lookup_dcookie,
    SYS_kexec_file_load,
#if defined(__x86_64__)
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS_uselib,
    SYS_ustat,
    SYS_sysfs,
    SYS__sysctl,
    SYS_create_module,
    SYS_query_module,
    SYS_get_kernel_syms,
#endif
};

// Line discipline, console and what types into a terminal for somebody else.
constexpr uint32_t kRefusedIoctls[] = {TIOCSTI, TIOCSETD, TIOCCONS, 0x541C /* TIOCLINUX */};

class Assembler {
 public:
  void Load(size_t offset) { Add(BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<uint32_t>(offset)); }
  void LoadNumber() { Load(offsetof(seccomp_data, nr)); }
  // The lower half: the kernel looks at no more of the arguments that are tested here.
  void LoadArgument(size_t index) { Load(offsetof(seccomp_data, args) + index * sizeof(uint64_t)); }
  void Mask(uint32_t bits) { Add(BPF_ALU | BPF_AND | BPF_K, 0, 0, bits); }
  void Return(uint32_t action) { Add(BPF_RET | BPF_K, 0, 0, action); }
  void Refuse(int error) { Return(SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)); }
  void Allow() { Return(SECCOMP_RET_ALLOW); }
  // The next instruction runs only if the condition holds.
  void IfEqual(uint32_t value) { Add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value); }
  void IfNotEqual(uint32_t value) { Add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, value); }
  void IfAbove(uint32_t value) { Add(BPF_JMP | BPF_JGT | BPF_K, 0, 1, value); }
  void IfAnyBit(uint32_t bits) { Add(BPF_JMP | BPF_JSET | BPF_K, 0, 1, bits); }
  // `body` runs, and must end in a return, if the system call is `number`.
  template <typename Body>
  void OnCall(uint32_t number, Body body) {
    const size_t jump = program_.size();
    Add(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, number);
    body();
    program_[jump].jf = static_cast<uint8_t>(program_.size() - jump - 1);
  }
  std::vector<sock_filter> Take() { return std::move(program_); }

 private:
  void Add(int code, uint8_t yes, uint8_t no, uint32_t value) {
    program_.push_back({static_cast<uint16_t>(code), yes, no, value});
  }
  std::vector<sock_filter> program_;
};

void add_architecture(Assembler& filter) {
  filter.Load(offsetof(seccomp_data, arch));
  filter.IfNotEqual(kArchitecture);
  filter.Return(SECCOMP_RET_KILL_PROCESS);
  filter.LoadNumber();
  filter.IfAbove(kNewestKnown);  // x32, which sets bit 30, is there too
  filter.Refuse(ENOSYS);
}

void add_processes(Assembler& filter) {
  filter.OnCall(SYS_clone3,
                [&] { filter.Refuse(ENOSYS); });  // its flags cannot be seen; libc then uses clone
  filter.OnCall(SYS_clone, [&] {
    filter.LoadArgument(0);
    filter.IfAnyBit(kRefusedCloneFlags);
    filter.Refuse(EPERM);
    filter.Allow();
  });
  filter.OnCall(SYS_personality, [&] {
    filter.LoadArgument(0);
    filter.IfEqual(0);
    filter.Allow();
    filter.IfEqual(0xffffffff);  // asks
    filter.Allow();
    filter.Refuse(EPERM);
  });
}

void add_devices(Assembler& filter) {
  filter.OnCall(SYS_ioctl, [&] {
    filter.LoadArgument(1);
    for (const uint32_t request : kRefusedIoctls) {
      filter.IfEqual(request);
      filter.Refuse(EPERM);
    }
    filter.Allow();
  });
  const auto only_plain_files = [&](size_t mode_argument) {
    filter.LoadArgument(mode_argument);
    filter.Mask(S_IFMT);
    for (const uint32_t type : {S_IFCHR, S_IFBLK}) {
      filter.IfEqual(type);
      filter.Refuse(EPERM);
    }
    filter.Allow();
  };
#if defined(__x86_64__)
  filter.OnCall(SYS_mknod, [&] { only_plain_files(1); });
#endif
  filter.OnCall(SYS_mknodat, [&] { only_plain_files(2); });
}

void add_sockets(Assembler& filter, const SeccompOptions& options) {
  filter.OnCall(SYS_socket, [&] {
    filter.LoadArgument(0);
    if (options.unix_sockets) {
      filter.IfEqual(AF_UNIX);
      filter.Allow();
    }
    if (options.network) {
      for (const uint32_t family : {AF_INET, AF_INET6, AF_NETLINK}) {
        filter.IfEqual(family);
        filter.Allow();
      }
    }
    filter.Refuse(EPERM);
  });
  filter.OnCall(SYS_socketpair, [&] {
    filter.LoadArgument(0);
    filter.IfNotEqual(AF_UNIX);
    filter.Refuse(EPERM);
    if (!options.unix_sockets) {  // a datagram socket of a pair can be connected to somebody else
      filter.LoadArgument(1);
      filter.Mask(0xf);
      filter.IfEqual(SOCK_DGRAM);
      filter.Refuse(EPERM);
      filter.IfEqual(SOCK_RAW);  // the same for AF_UNIX
      filter.Refuse(EPERM);
    }
    filter.Allow();
  });
}

}  // namespace

bool seccomp_available() noexcept {
  const uint32_t action = SECCOMP_RET_KILL_PROCESS;
  return raw_syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

std::vector<sock_filter> seccomp_program(const SeccompOptions& options) {
  Assembler filter;
  add_architecture(filter);
  for (const uint32_t number : kRefused) {
    filter.IfEqual(number);
    filter.Refuse(EPERM);
  }
  add_processes(filter);
  add_devices(filter);
  add_sockets(filter, options);
  filter.Allow();
  return filter.Take();
}

int seccomp_apply(const std::vector<sock_filter>& program) noexcept {
  const sock_fprog filter{static_cast<unsigned short>(program.size()),
                          const_cast<sock_filter*>(program.data())};
  return static_cast<int>(raw_syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter));
}

}  // namespace plimsoll::sandbox
