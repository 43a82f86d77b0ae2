#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/fail.h"
#include "plimsoll/memory_limit.h"

namespace plimsoll {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr Unit kUnits[] = {{"", 1},          {"B", 1},       {"KB", 1e3},      {"MB", 1e6},
                           {"GB", 1e9},      {"TB", 1e12},   {"KiB", 1024},    {"K", 1024},
                           {"MiB", 1 << 20}, {"M", 1 << 20}, {"GiB", 1 << 30}, {"G", 1 << 30},
                           {"TiB", 0x1p40},  {"T", 0x1p40}};

}  // namespace

int64_t ParseMemorySize(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const auto* known =
      std::find_if(std::begin(kUnits), std::end(kUnits), [&](const Unit& u) { return u.name == unit; });
  const double bytes =
      error != std::errc() || known == std::end(kUnits) ? -1 : std::floor(number * known->bytes);
  if (!(bytes >= 1 && bytes < 0x1p62))
    fail(ErrorCode::kInvalidArgument, "expected bytes, such as 64MiB, 1.5GiB, 500KB or 1048576, found '{}'",
         text);
  return static_cast<int64_t>(bytes);
}

}  // namespace plimsoll
