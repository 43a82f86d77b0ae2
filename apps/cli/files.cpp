#include "files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <limits.h>
#include <plimsoll/error.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "command.h"
#include "descriptor.h"
#include "interrupt.h"

namespace plimsoll::cli {
namespace {

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
  throw Error(ErrorCode::kIo, fmt::format("{}: {}: {}", path, what, std::strerror(error)));
}

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

std::string parent_of(const std::string& path) {
  return path.find('/') == std::string::npos ? "./" : path.substr(0, path.rfind('/') + 1);
}

// Where a symbolic link leads, though there be nothing yet: it stays, and what it names is replaced.
std::string behind_links(std::string path) {
  constexpr int kMostLinks = 40;
  for (int link = 0; link < kMostLinks; ++link) {
    char text[PATH_MAX];
    const ssize_t length = ::readlink(path.c_str(), text, sizeof(text));
    if (length <= 0) return path;
    const std::string target(text, static_cast<size_t>(length));
    path = target[0] == '/' ? target : parent_of(path).append(target);
  }
  fail(path, "cannot write", ELOOP);
}

// A device may be named twice.
bool is_same_file(const std::string& a, const std::string& b) {
  struct stat first, second;
  const bool is_there = ::stat(a.c_str(), &first) == 0;
  if (!is_there || ::stat(b.c_str(), &second) != 0) return !is_there && a == b;
  return S_ISREG(first.st_mode) && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

// A private file stays private, and its owner's, where we may decide that.
void keep_permissions(const Descriptor& file, const std::string& old) {
  struct stat status;
  if (::stat(old.c_str(), &status) != 0) return;
  if (::fchown(file.get(), status.st_uid, status.st_gid) != 0 && errno != EPERM) return;
  ::fchmod(file.get(), status.st_mode & 0777);
}

}  // namespace

bool is_descriptor(const std::string& path) {
  char directory[PATH_MAX];
  const std::string parent = parent_of(path);
  if (::realpath(parent.c_str(), directory) != nullptr && std::string_view(directory).starts_with("/proc/"))
    return true;
  char target[PATH_MAX];
  const ssize_t length = ::readlink(path.c_str(), target, sizeof(target));
  return length > 0 && std::string_view(target, static_cast<size_t>(length)).starts_with("/proc/");
}

int duplicate_descriptor(const std::string& path) {
  constexpr int kMostLinks = 8;
  const std::string ours = fmt::format("/proc/{}/", ::getpid());
  std::string at = path;
  for (int link = 0; link < kMostLinks; ++link) {
    char directory[PATH_MAX], target[PATH_MAX];
    if (::realpath(parent_of(at).c_str(), directory) == nullptr) return -1;
    const std::string_view place(directory);
    const std::string name = at.substr(at.rfind('/') + 1);  // npos + 1 is 0
    if (place.starts_with(ours) && place.ends_with("/fd")) {
      int number = -1;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
      if (error != std::errc() || end != name.data() + name.size()) return -1;
      struct stat status;
      const bool has_place = ::fstat(number, &status) == 0 && !S_ISFIFO(status.st_mode);
      return has_place ? ::fcntl(number, F_DUPFD_CLOEXEC, 3) : -1;
    }
    const ssize_t length = ::readlink(at.c_str(), target, sizeof(target));
    if (length <= 0) return -1;
    const std::string next(target, static_cast<size_t>(length));
    at = next.starts_with('/') ? next : std::string(place) + "/" + next;
  }
  return -1;
}

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

std::optional<size_t> regular_file_size(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return static_cast<size_t>(status.st_size);
}

std::shared_ptr<FileMapping> FileMapping::of(const std::string& path) {
  const std::optional<size_t> size = regular_file_size(path);
  const Descriptor file(size ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1);
  if (file.get() < 0 || *size == 0) return nullptr;
  void* data = ::mmap(nullptr, *size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) return nullptr;
  return std::shared_ptr<FileMapping>(new FileMapping({static_cast<char*>(data), *size}));
}

FileMapping::~FileMapping() {
  ::munmap(bytes_.data(), bytes_.size());
}

size_t read_part(const std::string& path, size_t offset, std::span<char> to) {
  const Descriptor file(path, O_RDONLY);
  if (file.get() < 0) fail(path, "cannot open", errno);
  size_t have = 0;
  while (have < to.size()) {
    const ssize_t got =
        ::pread(file.get(), to.data() + have, to.size() - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, "cannot read", errno);
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  return have;
}

void check_can_write(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) fail(path, "cannot write", EISDIR);
  if (is_special(path) || is_descriptor(path)) {
    if (::access(path.c_str(), W_OK) != 0) fail(path, "cannot write", errno);
  } else {
    NewFiles().add(path, {});
  }
}

void check_outputs(const std::string& model, std::initializer_list<NamedOutput> outputs) {
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    if (output->path.empty()) continue;
    if (is_same_file(output->path, model))
      throw UsageError(fmt::format("{}: '{}' is the model itself", output->option, output->path));
    for (auto other = outputs.begin(); other != output; ++other) {
      if (!is_same_file(output->path, other->path)) continue;
      throw UsageError(
          fmt::format("{} and {}: '{}' is the same file", other->option, output->option, output->path));
    }
  }
}

NewFiles::~NewFiles() {
  for (const Pending& file : pending_) ::unlink(file.temporary.c_str());
  for (auto path = made_.rbegin(); path != made_.rend(); ++path) ::rmdir(path->c_str());
}

void NewFiles::add_directory(const std::string& path) {
  struct stat status;
  const InterruptGuard guard;
  made_.reserve(made_.size() + 1);
  if (::mkdir(path.c_str(), 0777) == 0)
    made_.push_back(path);
  else if (errno != EEXIST)
    fail(path, "cannot make this directory", errno);
  if (::stat(path.c_str(), &status) != 0) fail(path, "cannot open", errno);
  if (!S_ISDIR(status.st_mode)) fail(path, "cannot write into it", ENOTDIR);
  if (::access(path.c_str(), W_OK | X_OK) != 0) fail(path, "cannot write into it", errno);
}

void NewFiles::add(const std::string& path, const std::vector<std::string_view>& pieces) {
  const InterruptGuard guard;
  const bool in_place = is_special(path) || is_descriptor(path);
  const std::string target = behind_links(path);
  const std::string temporary = in_place ? path : fmt::format("{}.{}.part", target, ::getpid());
  // A named pipe that nobody reads is an error, not a wait that no signal ends.
  const int duplicate = in_place ? duplicate_descriptor(path) : -1;
  Descriptor file =
      duplicate >= 0
          ? Descriptor(duplicate)
          : Descriptor(temporary, O_WRONLY | (in_place ? O_APPEND | O_NONBLOCK : O_CREAT | O_TRUNC));
  if (file.get() < 0) fail(path, "cannot write", errno);
  if (in_place && duplicate < 0) ::fcntl(file.get(), F_SETFL, O_APPEND);
  if (!in_place) {
    pending_.push_back({temporary, target});
    keep_permissions(file, target);
  }
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
  made_.clear();
}

}  // namespace plimsoll::cli
