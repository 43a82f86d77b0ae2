#include "runtime/memory_settings.h"

#include <cstdlib>

namespace plimsoll {

std::optional<MemoryConfig> named_clusters(const std::string& recompute) {
  if (recompute == "none") return std::nullopt;
  if (recompute == "level1") return MemoryConfig{MemoryLevel::kLayers, {}};
  if (recompute == "level2") return MemoryConfig{MemoryLevel::kCompromised, {}};
  if (recompute != "auto") return MemoryConfig{MemoryLevel::kUser, read_memory_config(recompute)};
  const MemoryConfig config = memory_config_from_environment({}, [](const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
  if (config.level == MemoryLevel::kUser && config.requests.empty()) return std::nullopt;
  return config;
}

}  // namespace plimsoll
