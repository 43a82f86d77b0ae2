// What is mounted, as the kernel lists it; read again only when the kernel says that it has changed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

struct MountEntry {
  std::string device;  // "0:35"
  std::string point, type, source;
  bool read_only = false;
};

std::vector<MountEntry> parse_mounts(std::string_view mountinfo);

// Of this process. Thread-safe; never null.
std::shared_ptr<const std::vector<MountEntry>> mount_table();

}  // namespace plimsoll
