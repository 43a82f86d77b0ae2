#include "watch_outlet.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <limits.h>
#include <plimsoll/error.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace plimsoll::cli {

Outlet::Outlet(int descriptor, Trouble trouble) : descriptor_(descriptor), trouble_(trouble) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return;
  is_socket_ = S_ISSOCK(status.st_mode);
  may_block_ = S_ISFIFO(status.st_mode) || ::isatty(descriptor) == 1;
  if (may_block_)
    own_ = ::open(fmt::format("/proc/self/fd/{}", descriptor).c_str(),
                  O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

Outlet::~Outlet() {
  if (own_ >= 0) ::close(own_);
}

int64_t Outlet::write_some(std::string_view text) const {
  if (is_socket_) return ::send(descriptor_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (own_ >= 0 || !may_block_) return ::write(descriptor(), text.data(), text.size());
  // Not ours to open again: a pipe that has room has it for so much.
  pollfd room = {descriptor_, POLLOUT, 0};
  if (::poll(&room, 1, 0) > 0)
    return ::write(descriptor_, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
  errno = EAGAIN;
  return -1;
}

void Outlet::add(std::string_view text) {
  if (broken_) return;
  waiting_ += text;
  flush();
}

void Outlet::add_or_drop(std::string_view text) {
  constexpr int64_t kMuch = 1 << 20;
  flush();
  if (bytes_behind() >= kMuch)
    ++dropped_;
  else
    add(text);
}

void Outlet::flush() {
  while (is_behind()) {
    const int64_t written = write_some(std::string_view(waiting_).substr(sent_));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) break;
    if (written < 0) {
      const int error = errno;
      broken_ = true;
      waiting_.clear();
      sent_ = 0;
      if (trouble_ == Trouble::kIgnored) return;
      throw Error(ErrorCode::kIo, fmt::format("cannot write to standard output: {}", std::strerror(error)));
    }
    sent_ += static_cast<size_t>(written);
  }
  waiting_.erase(0, sent_);
  sent_ = 0;
}

}  // namespace plimsoll::cli
