#include "watch_pipe.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <plimsoll/error.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace plimsoll::cli {

void Pipe::open() {
  close_both();
  if (::pipe2(ends_, O_CLOEXEC) != 0)
    throw Error(ErrorCode::kIo, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
}

void Pipe::close_write() {
  if (ends_[1] >= 0) ::close(std::exchange(ends_[1], -1));
}

void Pipe::close_both() {
  close_write();
  if (ends_[0] >= 0) ::close(std::exchange(ends_[0], -1));
}

std::string Pipe::read_some(bool& ended) {
  std::string bytes(65536, '\0');
  const ssize_t got = ends_[0] < 0 ? 0 : ::read(ends_[0], bytes.data(), bytes.size());
  ended = got == 0;
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

}  // namespace plimsoll::cli
