#include "runtime/memory_settings.h"

#include <cstdlib>

namespace plimsoll {

std::optional<MemoryConfig> named_clusters(const std::string& recompute, const SessionOptions& session) {
  if (recompute == "none") return std::nullopt;
  if (recompute == "level1") return MemoryConfig{MemoryLevel::kLayers, {}};
  if (recompute == "level2") return MemoryConfig{MemoryLevel::kCompromised, {}};
  if (recompute != "auto") return MemoryConfig{MemoryLevel::kUser, read_memory_config(recompute)};
  MemoryConfig given;
  if (const auto key = session.config_entries.find(std::string(kMemoryOptimizerKey));
      key != session.config_entries.end())
    given.requests = parse_memory_optimizer_key(key->second);
  const MemoryConfig config = memory_config_from_environment(std::move(given), [](const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
  if (config.level == MemoryLevel::kUser && config.requests.empty()) return std::nullopt;
  return config;
}

}  // namespace plimsoll
