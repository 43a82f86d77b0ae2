#include "isolate/sandbox_mounts.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

#include "base/fail.h"
#include "isolate/sandbox_syscall.h"

namespace plimsoll::sandbox {
namespace {

constexpr char kOldRoot[] = "/.outside";
constexpr unsigned kCloneTree = 1, kTreeCloseOnExec = O_CLOEXEC, kRecursive = 0x8000, kFromDescriptor = 4;
constexpr uint64_t kReadOnly = 1, kNoSetuid = 2, kNoDevices = 4;

struct MountAttributes {
  uint64_t set, clear, propagation, user_namespace;
};

// Files of /proc that show the machine rather than the job and that root may read without any capability.
const char* const kHiddenInProc[] = {"kcore", "kpagecount",  "kpageflags", "kpagecgroup",  "slabinfo",
                                     "keys",  "vmallocinfo", "timer_list", "kallsyms",     "modules",
                                     "iomem", "ioports",     "kmsg",       "sysrq-trigger"};
const char* const kDevices[] = {"null", "zero", "full", "random", "urandom"};

int set_attributes(int mount, const char* path, unsigned flags, uint64_t attributes) noexcept {
  const MountAttributes change{attributes, 0, 0, 0};
  return static_cast<int>(raw_syscall(SYS_mount_setattr, mount, path, flags, &change, sizeof(change)));
}

// A copy of what is mounted at and beneath `source` appears at `target`, with the attributes from the start.
// Links are not followed: somebody may have exchanged a directory for one since the parent looked.
int bind_tree(const char* source, const char* target, uint64_t attributes) noexcept {
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  const long file = raw_syscall(SYS_openat2, AT_FDCWD, source, &how, sizeof(how));
  if (file < 0) return static_cast<int>(file);
  const long tree =
      raw_syscall(SYS_open_tree, file, "", AT_EMPTY_PATH | kRecursive | kCloneTree | kTreeCloseOnExec);
  raw_syscall(SYS_close, file);
  if (tree < 0) return static_cast<int>(tree);
  int result = set_attributes(static_cast<int>(tree), "", AT_EMPTY_PATH | kRecursive, attributes);
  if (result == 0) {
    result = static_cast<int>(raw_syscall(SYS_move_mount, tree, "", AT_FDCWD, target, kFromDescriptor));
  }
  raw_syscall(SYS_close, tree);
  return result;
}

int mount_new(const char* type, const char* target, unsigned long flags, const char* options) noexcept {
  return static_cast<int>(raw_syscall(SYS_mount, type, target, type, flags, options));
}

// The new root takes the old one's place; the old one stays reachable at kOldRoot until leave_old_root().
int enter_new_root() noexcept {
  long result = raw_syscall(SYS_mount, nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  // Any directory does: what it hides comes back when the mount moves to the root.
  if (result == 0) {
    result = mount_new("tmpfs", "/usr", MS_NOSUID | MS_NODEV, "mode=755,size=4m,nr_inodes=16384");
  }
  if (result == 0) result = raw_syscall(SYS_chdir, "/usr");
  if (result == 0) result = raw_syscall(SYS_mkdirat, AT_FDCWD, kOldRoot + 1, 0755);
  if (result == 0) result = raw_syscall(SYS_pivot_root, ".", kOldRoot + 1);
  if (result == 0) result = raw_syscall(SYS_chdir, "/");
  return static_cast<int>(result);
}

int leave_old_root() noexcept {
  long result = raw_syscall(SYS_umount2, kOldRoot, MNT_DETACH);
  if (result == 0) result = raw_syscall(SYS_unlinkat, AT_FDCWD, kOldRoot, AT_REMOVEDIR);
  if (result == 0) result = set_attributes(AT_FDCWD, "/", 0, kReadOnly | kNoSetuid | kNoDevices);
  return static_cast<int>(result);
}

}  // namespace

Mounts::Mounts(int64_t temporary_bytes) {
  const std::string options = fmt::format("mode=1777,size={},nr_inodes=1000000", temporary_bytes);
  for (const char* directory : {"/tmp", "/proc", "/dev"}) AddDirectories(directory);
  steps_.push_back({Kind::kTemporary, "/tmp", options});
  steps_.push_back({Kind::kProc, "/proc", ""});
  for (const char* name : kHiddenInProc) {
    const std::string target = std::string("/proc/") + name;
    steps_.push_back({Kind::kDevice, target, std::string(kOldRoot) + "/dev/null", false, true});
  }
  for (const char* name : kDevices) {
    const std::string target = std::string("/dev/") + name;
    AddMountPoint(target, false);
    steps_.push_back({Kind::kDevice, target, kOldRoot + target, true});
  }
  AddDirectories("/dev/shm");
  steps_.push_back({Kind::kTemporary, "/dev/shm", options});
  steps_.push_back({Kind::kLink, "/dev/fd", "/proc/self/fd"});
  steps_.push_back({Kind::kLink, "/dev/stdin", "/proc/self/fd/0"});
  steps_.push_back({Kind::kLink, "/dev/stdout", "/proc/self/fd/1"});
  steps_.push_back({Kind::kLink, "/dev/stderr", "/proc/self/fd/2"});
}

void Mounts::Show(const View& view) {
  for (const VisiblePath& path : view.paths()) {
    AddMountPoint(path.path, path.directory);
    steps_.push_back({Kind::kBind, path.path, kOldRoot + path.path, path.access == Access::kWrite});
  }
  for (const VisibleLink& link : view.links()) {
    AddDirectories(link.path.substr(0, link.path.rfind('/')));
    steps_.push_back({Kind::kLink, link.path, link.target});
  }
}

void Mounts::AddDirectories(const std::string& path) {
  for (size_t end = path.find('/', 1); !path.empty(); end = path.find('/', end + 1)) {
    const std::string directory = path.substr(0, end);
    const bool known = std::any_of(steps_.begin(), steps_.end(), [&](const Step& step) {
      return step.kind == Kind::kDirectory && step.target == directory;
    });
    if (!known) steps_.push_back({Kind::kDirectory, directory, ""});
    if (end == std::string::npos) break;
  }
}

void Mounts::AddMountPoint(const std::string& path, bool directory) {
  if (directory) {
    AddDirectories(path);
  } else {
    AddDirectories(path.substr(0, path.rfind('/')));
    steps_.push_back({Kind::kFile, path, ""});
  }
}

int Mounts::Run(const Step& step) noexcept {
  const char* target = step.target.c_str();
  const char* source = step.source.c_str();
  const uint64_t read_only = step.writable ? 0 : kReadOnly;
  switch (step.kind) {
    case Kind::kDirectory:  // may be there in a tree shown already; if not, the mount says so
      raw_syscall(SYS_mkdirat, AT_FDCWD, target, 0755);
      return 0;
    case Kind::kFile:
      raw_syscall(SYS_mknodat, AT_FDCWD, target, S_IFREG | 0444, 0);
      return 0;
    case Kind::kLink: {
      const int result = static_cast<int>(raw_syscall(SYS_symlinkat, source, AT_FDCWD, target));
      return result == -EEXIST ? 0 : result;
    }
    case Kind::kBind:
      return bind_tree(source, target, read_only | kNoSetuid | kNoDevices);
    case Kind::kDevice:
      return bind_tree(source, target, read_only | kNoSetuid);
    case Kind::kTemporary:
      return mount_new("tmpfs", target, MS_NOSUID | MS_NODEV, source);
    case Kind::kProc:
      return mount_new("proc", target, MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, nullptr);
  }
  return 0;
}

int Mounts::Apply(const char** path) const noexcept {
  *path = "/";
  if (const int result = enter_new_root(); result < 0) return result;
  for (const Step& step : steps_) {
    *path = step.target.c_str();
    if (const int result = Run(step); result < 0 && !step.optional) return result;
  }
  *path = "/";
  return leave_old_root();
}

}  // namespace plimsoll::sandbox
