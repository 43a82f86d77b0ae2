#include "watch_recorder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <plimsoll/error.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "files.h"

namespace plimsoll::cli {

Recorder::~Recorder() {
  if (created_ && written_bytes_ == 0) ::unlink(path_.c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Recorder::open(const std::string& path) {
  path_ = path;
  descriptor_ = duplicate_descriptor(path);
  if (descriptor_ >= 0) return;
  created_ = ::access(path.c_str(), F_OK) != 0;
  // A named pipe that nobody reads is an error, not a wait that no signal ends.
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  created_ &= descriptor_ >= 0;
  if (descriptor_ < 0)
    throw Error(ErrorCode::kIo, fmt::format("{}: cannot write a recording: {}", path, std::strerror(errno)));
  struct stat status = {};
  const bool is_known = ::fstat(descriptor_, &status) == 0;
  if (!is_known || !S_ISFIFO(status.st_mode)) ::fcntl(descriptor_, F_SETFL, O_APPEND);
  replaces_ = is_known && S_ISREG(status.st_mode) && !is_descriptor(path);
}

void Recorder::add(std::string_view line) {
  if (descriptor_ < 0) return;
  std::string whole(line);
  whole += '\n';
  if (replaces_ && written_bytes_ == 0 && ::ftruncate(descriptor_, 0) != 0) return give_up(errno);
  for (size_t done = 0; done < whole.size();) {
    const ssize_t written = ::write(descriptor_, whole.data() + done, whole.size() - done);
    if (written < 0 && (errno == EINTR || (errno == EAGAIN && await_reader()))) continue;
    if (written < 0) return give_up(errno);
    done += static_cast<size_t>(written);
  }
  written_bytes_ += static_cast<long long>(whole.size());
}

bool Recorder::await_reader() const {
  constexpr int kMilliseconds = 2000;
  pollfd room = {descriptor_, POLLOUT, 0};
  const bool has_room = ::poll(&room, 1, kMilliseconds) > 0;
  if (!has_room) errno = EAGAIN;
  return has_room;
}

void Recorder::give_up(int error) {
  problem_ = fmt::format("{}: the recording ends early: {}", path_,
                         error == EAGAIN ? "nobody reads it" : std::strerror(error));
  if (replaces_ && ::ftruncate(descriptor_, written_bytes_) != 0) {
    // Not a file that can be cut: its reader leaves the incomplete line out.
  }
  ::close(std::exchange(descriptor_, -1));
}

void Recorder::close() {
  if (descriptor_ >= 0 && ::close(std::exchange(descriptor_, -1)) != 0)
    problem_ = fmt::format("{}: the recording may be incomplete: {}", path_, std::strerror(errno));
}

}  // namespace plimsoll::cli
