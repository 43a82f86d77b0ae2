// Where real models are: Debian's libonnx-testdata and the cache of tools/fetch_models.py.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace plimsoll {

inline std::vector<std::string> files_named(const std::filesystem::path& directory,
                                            const std::string& ending) {
  std::vector<std::string> found;
  if (!std::filesystem::exists(directory)) return found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const std::string path = entry.path().string();
    if (path.size() >= ending.size() && path.compare(path.size() - ending.size(), ending.size(), ending) == 0)
      found.push_back(path);
  }
  std::sort(found.begin(), found.end());
  return found;
}

inline const char* conformance_directory() {
  return "/usr/share/libonnx-testdata";
}

inline std::filesystem::path cache_directory() {
  if (const char* cache = std::getenv("PLIMSOLL_CACHE")) return cache;
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : "/root") / ".cache" / "plimsoll";
}

}  // namespace plimsoll
