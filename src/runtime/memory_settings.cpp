#include "runtime/memory_settings.h"

#include <cstdlib>

namespace plimsoll {

namespace {

MemoryConfig named_alone(const std::string& recompute, const SessionOptions& session) {
  if (recompute == "none") return {};
  if (recompute == "level1") return {MemoryLevel::kLayers, {}, {}};
  if (recompute == "level2") return {MemoryLevel::kCompromised, {}, {}};
  if (recompute != "auto") return {MemoryLevel::kUser, read_memory_config(recompute), {}};
  MemoryConfig given;
  if (const auto key = session.config_entries.find(std::string(kMemoryOptimizerKey));
      key != session.config_entries.end())
    given.requests = parse_memory_optimizer_key(key->second);
  return memory_config_from_environment(std::move(given), [](const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

}  // namespace

MemoryConfig named_clusters(const std::string& recompute, const SessionOptions& session) {
  MemoryConfig config = named_alone(recompute, session);
  if (const auto key = session.config_entries.find(std::string(kMemoryProbeKey));
      key != session.config_entries.end())
    config.probe = parse_memory_probe_key(key->second);
  return config;
}

}  // namespace plimsoll
