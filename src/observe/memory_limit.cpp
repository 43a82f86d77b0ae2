#include "plimsoll/memory_limit.h"

#include <algorithm>

#include "observe/cgroup.h"

namespace plimsoll {
namespace {

std::string parent_of(const std::string& directory) {
  return directory.substr(0, directory.rfind('/'));
}

// What one cgroup's own limit leaves; nothing if it has none.
std::optional<int64_t> left_in(const CgroupPlace& place) {
  const MemoryCgroup cgroup(place);
  const bool old = place.version == 1;
  const auto limit = parse_number(cgroup.file(old ? "memory.limit_in_bytes" : "memory.max"));
  constexpr int64_t kNone = int64_t{1} << 60;  // version 1 writes a very large number
  if (!limit || *limit >= kNone) return std::nullopt;
  const int64_t used = cgroup.usage_bytes().value_or(0);
  // What the kernel takes back by itself when memory is short.
  const std::string_view stat = cgroup.stat();
  const int64_t cache = number_of(stat, old ? "total_inactive_file" : "inactive_file").value_or(0) +
                        number_of(stat, old ? "total_active_file" : "active_file").value_or(0);
  return *limit - std::max<int64_t>(0, used - cache);
}

}  // namespace

std::optional<int64_t> ContainerMemoryLeft(const std::string& proc, const std::string& tree) {
  auto place = find_controller(cgroup_places(0, {proc, tree}), "memory");
  if (!place) return std::nullopt;
  std::optional<int64_t> least;
  while (place->directory.size() >= place->mount_point.size()) {
    if (const auto left = left_in(*place)) least = std::min(least.value_or(*left), *left);
    if (place->directory == place->mount_point) break;
    place->directory = parent_of(place->directory);
  }
  if (!least) return std::nullopt;
  return std::max<int64_t>(*least, 1);
}

int64_t ParseMemoryLimit(const std::string& text) {
  return text == "container" ? ContainerMemoryLeft().value_or(0) : ParseMemorySize(text);
}

}  // namespace plimsoll
