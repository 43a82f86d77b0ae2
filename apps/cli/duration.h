#pragma once

#include <chrono>
#include <string>

namespace plimsoll::cli {

// "500ms", "30s", "1.5m", "1.5min", "2h", "1d", "30" (seconds); throws UsageError. At least a millisecond.
std::chrono::milliseconds parse_duration(const std::string& text, const char* option);

}  // namespace plimsoll::cli
