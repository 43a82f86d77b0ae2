// fail(code, format, ...): throws plimsoll::Error with a formatted message.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "plimsoll/error.h"

namespace plimsoll {

template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace plimsoll
