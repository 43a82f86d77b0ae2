#include "onnx/new_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "base/fail.h"

namespace plimsoll::onnx {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

std::string name_of_descriptor(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

// A file of no folder, so that nothing of it stays if we are killed; -1 where there are none, or where it
// could not be given a name.
int open_nameless(const std::string& path) {
  const int fd = ::open(folder_of(path).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (fd < 0 || ::access(name_of_descriptor(fd).c_str(), F_OK) == 0) return fd;
  ::close(fd);
  return -1;
}

}  // namespace

NewFile::NewFile(const std::string& path) : path_(path) {
  struct stat target;
  is_special_ = ::stat(path.c_str(), &target) == 0 && !S_ISREG(target.st_mode);
  if (is_special_) {
    fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail_with("opened", errno);
    return;
  }
  fd_ = open_nameless(path);
  if (fd_ < 0)
    make_named([&](const std::string& name) {
      fd_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      return fd_ >= 0;
    });
  ::flock(fd_, LOCK_EX | LOCK_NB);  // as long as we live: see remove_abandoned
}

template <typename Make>
void NewFile::make_named(Make make) {
  for (int n = 0;; ++n) {
    std::string name = fmt::format("{}.partial-{}-{}", path_, ::getpid(), n);
    if (make(name)) {
      partial_ = std::move(name);  // a copy could fail, and nobody would remove the file
      return;
    }
    if (errno != EEXIST) fail_with("created", errno);
  }
}

NewFile::~NewFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!partial_.empty()) ::unlink(partial_.c_str());
}

void NewFile::fail_with(const char* action, int error) const {
  fail(ErrorCode::kIo, "file '{}': cannot be {}: {}", path_, action, std::strerror(error));
}

void NewFile::write(std::string_view bytes) {
  constexpr size_t kMost = 64 << 20;  // Linux takes no more than 2 GiB in one call
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), std::min(bytes.size(), kMost));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_with("written", errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void NewFile::sync() {
  if (::fsync(fd_) != 0 && !is_special_) fail_with("written", errno);  // a pipe has no disk
  if (!is_special_ && partial_.empty())
    make_named([&](const std::string& name) {
      const std::string nameless = name_of_descriptor(fd_);
      return ::linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
    });
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) fail_with("written", errno);
}

void NewFile::commit() {
  if (is_special_) return;
  if (::rename(partial_.c_str(), path_.c_str()) != 0) fail_with("renamed into place", errno);
  partial_.clear();
}

namespace {

// The process that made a file of this name beside `base`; 0 if it is no such name.
pid_t writer_of(std::string_view name, std::string_view base) {
  constexpr std::string_view kPartial = ".partial-";
  if (!name.starts_with(base) || !name.substr(base.size()).starts_with(kPartial)) return 0;
  const std::string_view rest = name.substr(base.size() + kPartial.size());
  pid_t pid = 0;
  int number = 0;
  const auto first = std::from_chars(rest.data(), rest.data() + rest.size(), pid);
  if (first.ec != std::errc() || first.ptr == rest.data() + rest.size() || *first.ptr != '-') return 0;
  const auto second = std::from_chars(first.ptr + 1, rest.data() + rest.size(), number);
  return second.ec == std::errc() && second.ptr == rest.data() + rest.size() ? pid : 0;
}

}  // namespace

void remove_abandoned(const std::string& path) noexcept try {
  const std::string folder = folder_of(path);
  const std::string base = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  if (entries == nullptr) return;
  while (const dirent* entry = ::readdir(entries.get())) {
    const pid_t pid = writer_of(entry->d_name, base);
    if (pid <= 0 || ::kill(pid, 0) == 0 || errno != ESRCH) continue;
    // A process of another container has a number of its own, but holds the lock.
    const std::string name = folder + entry->d_name;
    const int fd = ::open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) ::unlink(name.c_str());
    ::close(fd);
  }
} catch (...) {  // it is only tidying
}

}  // namespace plimsoll::onnx
