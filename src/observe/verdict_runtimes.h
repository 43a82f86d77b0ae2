// Runtimes whose collector lets a heap grow before it looks for what can go: known by the program's name.
#pragma once

#include <string_view>

namespace plimsoll {

struct Runtime {
  const char* name = nullptr;  // for people; null: none that is known, or one that frees at once
  double nursery_bytes = 0;    // that it fills before it collects for the first time, about
};

// `command` is the beginning of a command line.
Runtime find_runtime(std::string_view command);

}  // namespace plimsoll
