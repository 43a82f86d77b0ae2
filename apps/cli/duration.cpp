#include "duration.h"

#include <fmt/core.h>

#include <charconv>
#include <map>

#include "command.h"

namespace plimsoll::cli {

std::chrono::milliseconds parse_duration(const std::string& text, const char* option) {
  static const std::map<std::string, double> kUnits = {
      {"ms", 1}, {"", 1e3}, {"s", 1e3}, {"m", 60e3}, {"min", 60e3}, {"h", 3600e3}, {"d", 86400e3}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto unit = kUnits.find(std::string(end, text.data() + text.size()));
  const double milliseconds = error == std::errc() && unit != kUnits.end() ? number * unit->second : 0;
  if (!(milliseconds >= 1 && milliseconds < 1e13))
    throw UsageError(
        fmt::format("{}: expected a time, such as 500ms, 30s, 2m, 1h or 1d, found '{}'", option, text));
  return std::chrono::milliseconds(static_cast<int64_t>(milliseconds));
}

}  // namespace plimsoll::cli
