// Lines to and from a program that answers on a socket.
#pragma once

#include <functional>
#include <string>

namespace plimsoll::cli {

// Throws kIo if the other side is gone.
void send_line(int socket, const std::string& line);
// Waits for the next line, calling `meanwhile` every few milliseconds. Throws kIo if it is another one, or if
// the other side is gone.
void expect_line(int socket, const std::string& line, const std::function<void()>& meanwhile);

}  // namespace plimsoll::cli
