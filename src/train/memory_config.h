// What the memory optimizer is told: a level, and clusters by name, as ONNX Runtime's options and environment
// variables have them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

enum class MemoryLevel : uint8_t {
  kUser = 0,         // what the configuration names, and nothing else
  kLayers = 1,       // every plain plan inside the layers of a transformer
  kCompromised = 2,  // compromised plans too
};

enum class RecomputeStrategy : uint8_t {
  kNone = 0,
  kRecompute = 1,
  kCompromised = 2,  // something smaller must be kept instead: part of the bytes is saved
};

// "Cluster:Strategy:Count". A cluster is its operator types in the order in which they run, each followed by
// '+'. Count -1 is all, N the first N in topological order.
struct ClusterRequest {
  std::string cluster;
  RecomputeStrategy strategy = RecomputeStrategy::kNone;
  int64_t count = -1;
};

// How far clusters are looked for.
struct MemoryProbe {
  bool expensive = true;     // products, convolutions, normalizations and softmaxes may run again too
  bool layers_bound = true;  // none reaches beyond the layer of a transformer that its node is in
};

struct MemoryConfig {
  MemoryLevel level = MemoryLevel::kUser;
  std::vector<ClusterRequest> requests;
  MemoryProbe probe;
  bool names_any() const { return level != MemoryLevel::kUser || !requests.empty(); }
};

// Throw kInvalidArgument naming what was expected and found.
ClusterRequest parse_cluster_request(std::string_view text);
// A JSON array of such strings; `where` is named in errors.
std::vector<ClusterRequest> parse_memory_config(std::string_view json, std::string_view where);
std::vector<ClusterRequest> read_memory_config(const std::string& path);
MemoryLevel parse_memory_level(std::string_view text);

// ORTMODULE_MEMORY_OPT_LEVEL and ORTMODULE_MEMORY_OPT_CONFIG, a file, where `lookup` knows them; what is in
// `options` already stays.
using Lookup = std::function<std::optional<std::string>(const char* name)>;
MemoryConfig memory_config_from_environment(MemoryConfig options, const Lookup& lookup);

// Of ONNX Runtime's sessions. The first is a file as above, or, as in its older versions, requests parted by
// commas; the second "Level:Boundary": level 0 runs only cheap operators again, 1 expensive ones too; a
// boundary of 1 keeps clusters inside the layers of a transformer, 0, or none, does not.
inline constexpr std::string_view kMemoryOptimizerKey = "optimization.memory_optimizer_config";
inline constexpr std::string_view kMemoryProbeKey = "optimization.enable_memory_probe_recompute_config";
std::vector<ClusterRequest> parse_memory_optimizer_key(std::string_view value);
MemoryProbe parse_memory_probe_key(std::string_view value);

}  // namespace plimsoll
