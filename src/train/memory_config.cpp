#include "train/memory_config.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/fail.h"

namespace plimsoll {
namespace {

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

[[noreturn]] void reject(std::string_view where, std::string_view expected, std::string_view found) {
  fail(ErrorCode::kInvalidArgument, "{}: expected {}, found '{}'", where, expected, found);
}

bool is_cluster(std::string_view text) {
  if (text.empty() || text.front() == '+' || text.back() != '+') return false;
  return text.find("++") == std::string_view::npos;
}

}  // namespace

ClusterRequest parse_cluster_request(std::string_view text) {
  constexpr std::string_view kForm = "Cluster:Strategy:Count, such as BiasGelu+:1:-1";
  const size_t second = text.rfind(':');
  const size_t first =
      second == std::string_view::npos || second == 0 ? std::string_view::npos : text.rfind(':', second - 1);
  if (first == std::string_view::npos) reject("memory optimizer", kForm, text);
  const std::string_view cluster = text.substr(0, first);
  const auto strategy = whole_number(text.substr(first + 1, second - first - 1));
  const auto count = whole_number(text.substr(second + 1));
  if (!is_cluster(cluster)) reject("memory optimizer", "operators, each followed by '+'", cluster);
  if (!strategy || *strategy < 0 || *strategy > 2)
    reject("memory optimizer", "a strategy of 0, 1 or 2", text);
  if (!count || *count < -1) reject("memory optimizer", "a count of -1 (all) or more", text);
  return {std::string(cluster), static_cast<RecomputeStrategy>(*strategy), *count};
}

std::vector<ClusterRequest> parse_memory_config(std::string_view json, std::string_view where) {
  const auto parsed = nlohmann::json::parse(json.begin(), json.end(), nullptr, false);
  if (!parsed.is_array())
    fail(ErrorCode::kInvalidArgument, "{}: expected a JSON array of strings, found {}", where,
         parsed.is_discarded() ? "no JSON" : parsed.type_name());
  std::vector<ClusterRequest> requests;
  for (const auto& item : parsed) {
    if (!item.is_string())
      fail(ErrorCode::kInvalidArgument, "{}: expected strings in the array, found {}", where,
           item.type_name());
    requests.push_back(parse_cluster_request(item.get<std::string>()));
  }
  return requests;
}

std::vector<ClusterRequest> read_memory_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ErrorCode::kIo, "memory optimizer: expected a file that can be read, found '{}'", path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse_memory_config(text, path);
}

MemoryLevel parse_memory_level(std::string_view text) {
  const auto level = whole_number(text);
  if (!level || *level < 0 || *level > 2) reject("memory optimizer", "a level of 0, 1 or 2", text);
  return static_cast<MemoryLevel>(*level);
}

MemoryConfig memory_config_from_environment(MemoryConfig options, const Lookup& lookup) {
  if (const auto level = lookup("ORTMODULE_MEMORY_OPT_LEVEL"); level && options.level == MemoryLevel::kUser)
    options.level = parse_memory_level(*level);
  if (const auto file = lookup("ORTMODULE_MEMORY_OPT_CONFIG"); file && options.requests.empty())
    options.requests = read_memory_config(*file);
  return options;
}

std::vector<ClusterRequest> parse_memory_optimizer_key(std::string_view value) {
  if (value.empty()) return {};
  if (value.front() == '[') return parse_memory_config(value, kMemoryOptimizerKey);
  if (value.find(':') == std::string_view::npos) return read_memory_config(std::string(value));
  std::vector<ClusterRequest> requests;
  while (true) {
    const size_t comma = value.find(',');
    requests.push_back(parse_cluster_request(value.substr(0, comma)));
    if (comma == std::string_view::npos) return requests;
    value.remove_prefix(comma + 1);
  }
}

MemoryProbe parse_memory_probe_key(std::string_view value) {
  if (value.empty()) return {};
  const auto flag = [&](std::string_view text) {
    const auto number = whole_number(text);
    if (!number || *number < 0 || *number > 1)
      reject(kMemoryProbeKey, "Level:Boundary, each 0 or 1, such as 1:0", value);
    return *number == 1;
  };
  const size_t colon = value.find(':');
  MemoryProbe probe;
  probe.expensive = flag(value.substr(0, colon));
  probe.layers_bound = colon != std::string_view::npos && flag(value.substr(colon + 1));
  return probe;
}

}  // namespace plimsoll
