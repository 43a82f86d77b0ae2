#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "attempts.h"

namespace escape {
namespace {

bool read_file(const Arguments& a) {  // FILE
  const int file = open(a[0].c_str(), O_RDONLY);
  char byte;
  const bool got = file >= 0 && read(file, &byte, 1) >= 0;
  opened(file);
  return got;
}
bool open_to_read(const Arguments& a) {
  return opened(open(a[0].c_str(), O_RDONLY));
}
bool open_to_write(const Arguments& a) {
  const int file = open(a[0].c_str(), O_WRONLY);
  struct stat status = {};
  const bool is_null = file >= 0 && fstat(file, &status) == 0 && S_ISCHR(status.st_mode) &&
                       status.st_rdev == makedev(1, 3);  // covers what is hidden in /proc
  const bool out = opened(file) && !is_null;
  if (is_null) errno = ENXIO;
  return out;
}
bool see(const Arguments& a) {
  struct stat status;
  return stat(a[0].c_str(), &status) == 0;
}
bool list(const Arguments& a) {
  DIR* directory = opendir(a[0].c_str());
  if (directory == nullptr) return false;
  closedir(directory);
  return true;
}
bool read_by_dots(const Arguments& a) {
  return read_file({std::string("../../../../../../../../..") + a[0]});
}
bool read_through_own_root(const Arguments& a) {
  return read_file({"/proc/self/root" + a[0]});
}
bool read_through_init_root(const Arguments& a) {
  return read_file({"/proc/1/root" + a[0]});
}
bool read_through_own_directory(const Arguments& a) {
  return read_file({"/proc/self/cwd/../../../../../../.." + a[0]});
}
bool read_through_link(const Arguments& a) {
  const std::string link = temporary("link");
  unlink(link.c_str());
  if (symlink(a[0].c_str(), link.c_str()) != 0) return false;
  const bool got = read_file({link});
  const int error = errno;
  unlink(link.c_str());
  errno = error;
  return got;
}
bool create_file(const Arguments& a) {
  return opened(open(a[0].c_str(), O_WRONLY | O_CREAT, 0600));
}
bool make_directory(const Arguments& a) {
  return mkdir((a[0] + "/made").c_str(), 0700) == 0;
}
bool truncate_file(const Arguments& a) {
  return truncate(a[0].c_str(), 0) == 0;
}
bool open_and_truncate(const Arguments& a) {
  return opened(open(a[0].c_str(), O_RDONLY | O_TRUNC));
}
bool remove_file(const Arguments& a) {
  return unlink(a[0].c_str()) == 0;
}
bool change_mode(const Arguments& a) {
  return chmod(a[0].c_str(), 0777) == 0;
}
bool change_times(const Arguments& a) {
  return utimensat(AT_FDCWD, a[0].c_str(), nullptr, 0) == 0;
}
bool change_attribute(const Arguments& a) {
  return setxattr(a[0].c_str(), "user.plimsoll", "x", 1, 0) == 0;
}
bool rename_file(const Arguments& a) {
  return rename(a[0].c_str(), a[1].c_str()) == 0;
}  // FROM TO
bool link_file(const Arguments& a) {
  return link(a[0].c_str(), a[1].c_str()) == 0;
}  // FROM TO
bool rename_out(const Arguments& a) {  // DIRECTORY: from the job's own place
  const std::string from = temporary("mine");
  if (!create_file({from})) return false;
  return rename_file({from, a[0] + "/moved"});
}
bool open_by_number(const Arguments& a) {  // FILE
  alignas(file_handle) char bytes[sizeof(file_handle) + 128] = {};
  file_handle* handle = reinterpret_cast<file_handle*>(bytes);
  handle->handle_bytes = 128;
  int mount = 0;
  if (name_to_handle_at(AT_FDCWD, a[0].c_str(), handle, &mount, 0) != 0) return false;
  const int directory = open("/", O_RDONLY | O_DIRECTORY);
  const bool got = opened(open_by_handle_at(directory, handle, O_RDONLY));
  const int error = errno;
  opened(directory);
  errno = error;
  return got;
}
bool run_program(const Arguments& a) {  // PROGRAM: exits 0
  execl(a[0].c_str(), a[0].c_str(), nullptr);
  return false;
}
bool leave_chroot(const Arguments& a) {  // FILE: the classic way out
  const std::string jail = temporary("jail");
  mkdir(jail.c_str(), 0700);
  if (chroot(jail.c_str()) != 0) return false;
  for (int i = 0; i < 32; ++i) {
    if (chdir("..") != 0) return false;
  }
  return chroot(".") == 0 && see(a);
}
bool inherited_descriptor(const Arguments&) {
  for (int file = 3; file < 4096; ++file) {
    if (fcntl(file, F_GETFD) >= 0) return true;
  }
  return false;
}
bool make_block_device(const Arguments& a) {  // DIRECTORY, or TMPDIR
  const std::string node = a.empty() ? temporary("disk") : a[0] + "/disk";
  unlink(node.c_str());
  if (mknod(node.c_str(), S_IFBLK | 0600, makedev(7, 0)) != 0) return false;
  unlink(node.c_str());
  return true;
}
bool make_memory_device(const Arguments& a) {
  const std::string node = a.empty() ? temporary("memory") : a[0] + "/memory";
  unlink(node.c_str());
  if (mknod(node.c_str(), S_IFCHR | 0600, makedev(1, 1)) != 0) return false;
  unlink(node.c_str());
  return true;
}
bool open_device(const Arguments&) {  // any that is not harmless
  for (const char* device : {"/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/loop-control", "/dev/kvm",
                             "/dev/fuse", "/dev/tty0", "/dev/ptmx", "/dev/userfaultfd"}) {
    if (opened(open(device, O_RDONLY | O_NOCTTY))) return true;
  }
  return false;
}
bool leave_cgroup(const Arguments& a) {  // CGROUP.PROCS
  const int file = open(a[0].c_str(), O_WRONLY);
  const bool moved = file >= 0 && write(file, "0", 1) == 1;
  const int error = errno;
  opened(file);
  errno = error;
  return moved;
}

}  // namespace

std::vector<Attempt> file_attempts() {
  return {
      {"read_file", read_file},
      {"open_to_read", open_to_read},
      {"open_to_write", open_to_write},
      {"see", see},
      {"list", list},
      {"read_by_dots", read_by_dots},
      {"read_through_own_root", read_through_own_root},
      {"read_through_init_root", read_through_init_root},
      {"read_through_own_directory", read_through_own_directory},
      {"read_through_link", read_through_link},
      {"create_file", create_file},
      {"make_directory", make_directory},
      {"truncate_file", truncate_file},
      {"open_and_truncate", open_and_truncate},
      {"remove_file", remove_file},
      {"change_mode", change_mode},
      {"change_times", change_times},
      {"change_attribute", change_attribute},
      {"rename_file", rename_file},
      {"rename_out", rename_out},
      {"link_file", link_file},
      {"open_by_number", open_by_number},
      {"run_program", run_program},
      {"leave_chroot", leave_chroot},
      {"inherited_descriptor", inherited_descriptor},
      {"make_block_device", make_block_device},
      {"make_memory_device", make_memory_device},
      {"open_device", open_device},
      {"leave_cgroup", leave_cgroup},
  };
}

}  // namespace escape
