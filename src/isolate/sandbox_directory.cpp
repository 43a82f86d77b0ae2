#include "isolate/sandbox_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/descriptor.h"
#include "base/fail.h"

namespace plimsoll::sandbox {
namespace {

constexpr std::string_view kPrefix = "plimsoll-job-";
constexpr int kAttempts = 16;

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

Directory open_directory(int parent, const char* name) noexcept {
  // A job may have taken its own permissions away; fchmodat follows no link that open would not refuse.
  int file = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat status = {};
  if (file < 0 && errno == EACCES && fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISDIR(status.st_mode) && fchmodat(parent, name, 0700, 0) == 0) {
    file = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  }
  if (file < 0) return nullptr;
  Directory directory(fdopendir(file));
  if (!directory) {
    close(file);
    return nullptr;
  }
  struct stat own = {};
  if (fstat(file, &own) == 0 && (own.st_mode & 0700) != 0700) fchmod(file, 0700);
  return directory;
}

bool is_dots(const char* name) {
  return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0;
}

// Empties the directory `name` of `top`: files go, directories move up into `top` under new names. So a tree
// of any depth is taken apart with two descriptors and without recursion.
bool flatten(int top, const char* name, unsigned long& next_name) noexcept {
  const Directory directory = open_directory(top, name);
  if (!directory) return false;
  const int file = dirfd(directory.get());
  bool complete = true;
  while (const dirent* entry = readdir(directory.get())) {
    if (is_dots(entry->d_name)) continue;
    if (unlinkat(file, entry->d_name, 0) == 0) continue;
    char moved[48];
    do {
      std::snprintf(moved, sizeof(moved), ".plimsoll-remove-%lu", next_name++);
    } while (faccessat(top, moved, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
    if (renameat(file, entry->d_name, top, moved) != 0) {
      // A directory that its owner may not write cannot be moved: its ".." changes.
      fchmodat(file, entry->d_name, 0700, 0);
      complete = renameat(file, entry->d_name, top, moved) == 0 && complete;
    }
  }
  return complete;
}

// One pass over `top`; true if it found something and could remove it.
bool remove_entries(int top, unsigned long& next_name) noexcept {
  const Directory directory = open_directory(top, ".");
  if (!directory) return false;
  bool progress = false;
  while (const dirent* entry = readdir(directory.get())) {
    if (is_dots(entry->d_name)) continue;
    if (unlinkat(top, entry->d_name, 0) == 0) {
      progress = true;
    } else {
      flatten(top, entry->d_name, next_name);
      progress = unlinkat(top, entry->d_name, AT_REMOVEDIR) == 0 || progress;
    }
  }
  return progress;
}

int try_lock(const std::string& path) noexcept {
  const int file = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return -1;
  struct stat locked = {};
  struct stat named = {};
  if (flock(file, LOCK_EX | LOCK_NB) == 0 && fstat(file, &locked) == 0 && lstat(path.c_str(), &named) == 0 &&
      locked.st_ino == named.st_ino && locked.st_dev == named.st_dev) {
    return file;
  }
  close(file);
  return -1;
}

}  // namespace

std::string temporary_parent() {
  const char* chosen = std::getenv("TMPDIR");
  return chosen != nullptr && chosen[0] == '/' ? chosen : "/tmp";
}

bool remove_tree(const std::string& path) noexcept {
  if (rmdir(path.c_str()) == 0 || errno == ENOENT) return true;
  {
    const Directory top = open_directory(AT_FDCWD, path.c_str());
    if (!top) return false;
    unsigned long next_name = 0;
    while (remove_entries(dirfd(top.get()), next_name)) {
    }
  }
  return rmdir(path.c_str()) == 0;
}

TemporaryDirectory::TemporaryDirectory(const std::string& parent) : owner_(getpid()) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    path_ = fmt::format("{}/{}{}-XXXXXX", parent, kPrefix, getpid());
    if (mkdtemp(path_.data()) == nullptr) {
      fail(ErrorCode::kIo, "sandbox: cannot create a temporary directory in '{}': {}", parent,
           std::strerror(errno));
    }
    descriptor_ = try_lock(path_);
    if (descriptor_ >= 0) return;
    rmdir(path_.c_str());  // somebody who cleans up was faster
  }
  fail(ErrorCode::kIo, "sandbox: cannot lock a temporary directory in '{}'", parent);
}

TemporaryDirectory::~TemporaryDirectory() {
  if (owner_ == getpid()) remove_tree(path_);
  close(descriptor_);
}

int remove_leftover_directories(const std::string& parent) noexcept {
  const Directory directory(opendir(parent.c_str()));
  if (!directory) return 0;
  int removed = 0;
  while (const dirent* entry = readdir(directory.get())) {
    if (std::strncmp(entry->d_name, kPrefix.data(), kPrefix.size()) != 0) continue;
    struct stat status = {};
    if (fstatat(dirfd(directory.get()), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(status.st_mode) || status.st_uid != geteuid()) {
      continue;
    }
    try {
      const std::string path = parent + "/" + entry->d_name;
      const Descriptor lock(try_lock(path));
      if (lock.get() >= 0 && remove_tree(path)) ++removed;
    } catch (const std::exception&) {  // out of memory: the next start does it
      return removed;
    }
  }
  return removed;
}

}  // namespace plimsoll::sandbox
