// Memory limits as people write them.
//
// Any thread may call; nothing is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace plimsoll {

// "512MiB", "1.5 GiB", "500KB", "1048576". Throws kInvalidArgument.
int64_t ParseMemorySize(const std::string& text);

// What the limit of this process's memory cgroup (version 1 or 2, the tightest on the way up) leaves it: the
// limit without what the cgroup holds that cannot be reclaimed, and at least one byte. Nothing if there is no
// limit or no cgroup to be seen. `proc` and `tree` are for tests: where /proc is, and what stands before the
// mount points found there.
std::optional<int64_t> ContainerMemoryLeft(const std::string& proc = "/proc", const std::string& tree = "");

// A size, or "container": ContainerMemoryLeft(), 0 (none) where there is no limit.
int64_t ParseMemoryLimit(const std::string& text);

}  // namespace plimsoll
