#include "socket_line.h"

#include <fmt/core.h>
#include <plimsoll/error.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace plimsoll::cli {
namespace {

constexpr int kPollMs = 10;
constexpr size_t kLongestLine = 4096;

[[noreturn]] void gone(const std::string& expected) {
  throw Error(ErrorCode::kIo, fmt::format("the program ended before it said '{}'", expected));
}

}  // namespace

void send_line(int socket, const std::string& line) {
  const std::string text = line + "\n";
  if (send(socket, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) gone(line);
}

void expect_line(int socket, const std::string& line, const std::function<void()>& meanwhile) {
  std::string heard;
  while (heard.size() < kLongestLine) {
    pollfd waiting{socket, POLLIN, 0};
    const int ready = poll(&waiting, 1, kPollMs);
    if (ready < 0 && errno != EINTR)
      throw Error(ErrorCode::kIo, "poll: " + std::generic_category().message(errno));
    if (ready <= 0) {
      meanwhile();
      continue;
    }
    char next = 0;
    const ssize_t got = read(socket, &next, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) gone(line);
    if (next == '\n') break;
    heard += next;
  }
  if (heard != line) throw Error(ErrorCode::kIo, fmt::format("expected '{}', heard '{}'", line, heard));
}

}  // namespace plimsoll::cli
