#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "attempts.h"

namespace escape {
namespace {

// A child that only ends; true if it could be made.
bool child_made(long pid) {
  if (pid == 0) _exit(0);
  if (pid < 0) return false;
  waitpid(static_cast<pid_t>(pid), nullptr, 0);
  return true;
}

bool unshare_user(const Arguments&) {
  return unshare(CLONE_NEWUSER) == 0;
}
bool unshare_mounts(const Arguments&) {
  return unshare(CLONE_NEWNS) == 0;
}
bool unshare_time(const Arguments&) {
  return unshare(CLONE_NEWTIME) == 0;
}
bool clone_user(const Arguments&) {
  return child_made(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
}
bool clone_network(const Arguments&) {
  return child_made(syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0));
}
bool clone_sibling(const Arguments&) {  // a child of our parent's, which knows nothing of it
  const long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) _exit(0);
  return pid > 0;
}
bool clone3_user(const Arguments&) {
  clone_args arguments = {};
  arguments.flags = CLONE_NEWUSER;
  arguments.exit_signal = SIGCHLD;
  return child_made(syscall(SYS_clone3, &arguments, sizeof(arguments)));
}
bool enter_namespace(const Arguments&) {  // the first process's, which here has nobody else's
  for (const char* name : {"/proc/1/ns/mnt", "/proc/1/ns/user", "/proc/self/ns/mnt", "/proc/self/ns/uts"}) {
    const int file = open(name, O_RDONLY);
    const bool entered = file >= 0 && setns(file, 0) == 0;
    opened(file);
    if (entered) return true;
  }
  return false;
}
bool mount_memory(const Arguments& a) {  // [DIRECTORY]
  const std::string target = a.empty() ? temporary("target") : a[0] + "/target";
  mkdir(target.c_str(), 0700);
  if (mount("tmpfs", target.c_str(), "tmpfs", 0, "size=64k") != 0) return false;
  umount2(target.c_str(), MNT_DETACH);
  return true;
}
bool mount_again_writable(const Arguments&) {
  return mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND, nullptr) == 0;
}
bool unmount(const Arguments&) {  // what hides or guards something
  for (const char* path : {"/proc", "/tmp", "/usr", "/dev/null", "/"}) {
    if (umount2(path, MNT_DETACH) == 0) return true;
  }
  return false;
}
bool open_file_system(const Arguments&) {
  return opened(syscall(SYS_fsopen, "tmpfs", 0));
}
bool copy_mounts(const Arguments&) {
  return opened(syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* clone */));
}
bool clear_read_only(const Arguments&) {
  const struct { unsigned long set, clear, propagation, user; } change{0, 1, 0, 0};
  return syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &change, sizeof(change)) == 0;
}
bool change_root(const Arguments&) {
  return passed_permission(syscall(SYS_pivot_root, "/nowhere", "/nowhere"));
}

}  // namespace

std::vector<Attempt> namespace_attempts() {
  return {
      {"unshare_user", unshare_user},
      {"unshare_mounts", unshare_mounts},
      {"unshare_time", unshare_time},
      {"clone_user", clone_user},
      {"clone_network", clone_network},
      {"clone_sibling", clone_sibling},
      {"clone3_user", clone3_user},
      {"enter_namespace", enter_namespace},
      {"mount_memory", mount_memory},
      {"mount_again_writable", mount_again_writable},
      {"unmount", unmount},
      {"open_file_system", open_file_system},
      {"copy_mounts", copy_mounts},
      {"clear_read_only", clear_read_only},
      {"change_root", change_root},
  };
}

}  // namespace escape
