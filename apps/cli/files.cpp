#include "files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <plimsoll/error.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "interrupt.h"

namespace plimsoll::cli {
namespace {

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
  throw Error(ErrorCode::kIo, fmt::format("{}: {}: {}", path, what, std::strerror(error)));
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  int get() const { return fd_; }
  // Some file systems tell of a full disk only here.
  int close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd);
  }

 private:
  int fd_;
};

void write_all(const Descriptor& file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path, "cannot write", errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

bool is_special(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

}  // namespace

std::string read_file(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  if (file.get() < 0) fail(path, "cannot open", errno);
  struct stat status;
  if (::fstat(file.get(), &status) != 0) fail(path, "cannot read", errno);
  std::string contents(S_ISREG(status.st_mode) ? static_cast<size_t>(status.st_size) : 0, '\0');
  size_t have = 0;
  for (;;) {
    // One byte more than expected tells the end of the file; a pipe grows as it goes.
    if (have == contents.size() && !S_ISREG(status.st_mode)) contents.resize(have + 65536);
    const ssize_t got = ::read(file.get(), contents.data() + have, contents.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, "cannot read", errno);
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  contents.resize(have);
  return contents;
}

void make_directory(const std::string& path) {
  struct stat status;
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) fail(path, "cannot make this directory", errno);
  if (::stat(path.c_str(), &status) != 0) fail(path, "cannot open", errno);
  if (!S_ISDIR(status.st_mode)) fail(path, "cannot write into it", ENOTDIR);
  if (::access(path.c_str(), W_OK | X_OK) != 0) fail(path, "cannot write into it", errno);
}

NewFiles::~NewFiles() {
  for (const Pending& file : pending_) ::unlink(file.temporary.c_str());
}

void NewFiles::add(const std::string& path, const std::vector<std::string_view>& pieces) {
  const InterruptGuard guard;
  const bool in_place = is_special(path);
  const std::string temporary = in_place ? path : fmt::format("{}.{}.part", path, ::getpid());
  Descriptor file(temporary, in_place ? O_WRONLY : O_WRONLY | O_CREAT | O_TRUNC);
  if (file.get() < 0) fail(path, "cannot write", errno);
  if (!in_place) pending_.push_back({temporary, path});
  for (const std::string_view piece : pieces) write_all(file, piece, path);
  if (file.close() != 0) fail(path, "cannot write", errno);
  check_interrupted();
}

void NewFiles::commit() {
  const InterruptGuard guard;
  while (!pending_.empty()) {
    const Pending& file = pending_.back();
    if (std::rename(file.temporary.c_str(), file.path.c_str()) != 0) fail(file.path, "cannot write", errno);
    pending_.pop_back();
  }
}

}  // namespace plimsoll::cli
