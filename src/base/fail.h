// fail(code, format, ...): throws plimsoll::Error with a formatted message.
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

#include "plimsoll/error.h"

namespace plimsoll {

// `message` with '?' for control characters: names come from files and go to terminals.
std::string printable(std::string message);

[[noreturn]] void fail_with(ErrorCode code, std::string message);

template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  fail_with(code, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace plimsoll
