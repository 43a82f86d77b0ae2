#include "onnx/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/fail.h"

namespace plimsoll::onnx {

NewFile::NewFile(const std::string& path) : path_(path) {
  struct stat target;
  is_special_ = ::stat(path.c_str(), &target) == 0 && !S_ISREG(target.st_mode);
  if (is_special_) {
    fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail_with("opened", errno);
    return;
  }
  for (int n = 0; fd_ < 0; ++n) {
    partial_ = fmt::format("{}.partial-{}-{}", path, ::getpid(), n);
    fd_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno != EEXIST) fail_with("created", errno);
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
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) fail_with("written", errno);
}

void NewFile::commit() {
  if (is_special_) return;
  if (::rename(partial_.c_str(), path_.c_str()) != 0) fail_with("renamed into place", errno);
  partial_.clear();
}

}  // namespace plimsoll::onnx
