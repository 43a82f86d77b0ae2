#include "plimsoll/session_options.h"

#include <algorithm>

#include "base/fail.h"

namespace plimsoll {
namespace {

constexpr const char* kCpu = "CPUExecutionProvider";

}  // namespace

std::vector<std::string> GetAvailableProviders() {
  return {kCpu};
}

std::vector<std::string> GetAllProviders() {
  return {"NvTensorRTRTXExecutionProvider",
          "TensorrtExecutionProvider",
          "CUDAExecutionProvider",
          "MIGraphXExecutionProvider",
          "ROCMExecutionProvider",
          "OpenVINOExecutionProvider",
          "DnnlExecutionProvider",
          "VitisAIExecutionProvider",
          "QNNExecutionProvider",
          "NnapiExecutionProvider",
          "VSINPUExecutionProvider",
          "JsExecutionProvider",
          "CoreMLExecutionProvider",
          "ArmNNExecutionProvider",
          "ACLExecutionProvider",
          "DmlExecutionProvider",
          "RknpuExecutionProvider",
          "WebNNExecutionProvider",
          "WebGpuExecutionProvider",
          "XnnpackExecutionProvider",
          "CANNExecutionProvider",
          "AzureExecutionProvider",
          kCpu};
}

namespace {

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// The whole name for it or for its beginning ("CUDA", "XNNPACK"); throws kInvalidArgument.
std::string provider_name(const std::string& name) {
  const std::vector<std::string> all = GetAllProviders();
  const auto is_it = [&](const std::string& known) {
    return lower(known) == lower(name) || lower(known) == lower(name) + "executionprovider";
  };
  const auto found = std::find_if(all.begin(), all.end(), is_it);
  if (found != all.end()) return *found;
  fail(ErrorCode::kInvalidArgument, "there is no execution provider '{}'; this build has {}", name, kCpu);
}

int64_t checked_size(const std::string& what, const std::string& name, int64_t size) {
  if (name.empty() || size < 0)
    fail(ErrorCode::kInvalidArgument, "free dimension by {}: expected one with 0 or more, found '{}' = {}",
         what, name, size);
  return size;
}

}  // namespace

SessionOptions& SessionOptions::AppendExecutionProvider(const std::string& name,
                                                        const std::map<std::string, std::string>& settings) {
  const std::string provider = provider_name(name);
  if (provider != kCpu)
    fail(ErrorCode::kNotImplemented, "{} execution provider is not enabled in this build: it has {}",
         provider, kCpu);
  std::map<std::string, std::string> of_arena = settings;
  if (const auto use = of_arena.extract("use_arena"); !use.empty()) {
    if (use.mapped() != "0" && use.mapped() != "1")
      fail(ErrorCode::kInvalidArgument, "use_arena: expected 0 or 1, found '{}'", use.mapped());
    keep_arena = use.mapped() == "1";
  }
  if (!of_arena.empty()) arena = ArenaCfg(of_arena);
  providers.push_back({provider, settings});
  return *this;
}

std::string SessionOptions::GetConfigEntry(const std::string& key) const {
  const auto found = config_entries.find(key);
  if (found == config_entries.end())
    fail(ErrorCode::kInvalidArgument, "config entry '{}': expected one that was added, found none", key);
  return found->second;
}

std::string SessionOptions::GetConfigEntryOrDefault(const std::string& key,
                                                    const std::string& otherwise) const {
  const auto found = config_entries.find(key);
  return found == config_entries.end() ? otherwise : found->second;
}

SessionOptions& SessionOptions::AddFreeDimensionOverrideByName(const std::string& name, int64_t size) {
  free_dimensions_by_name[name] = checked_size("name", name, size);
  return *this;
}
SessionOptions& SessionOptions::AddFreeDimensionOverride(const std::string& denotation, int64_t size) {
  free_dimensions_by_denotation[denotation] = checked_size("denotation", denotation, size);
  return *this;
}

namespace {

void add_tensor(std::map<std::string, Value>& table, const std::string& name, const Value& value) {
  if (!value.IsTensor())
    fail(ErrorCode::kInvalidArgument, "initializer '{}': expected a tensor, found {}", name,
         value.GetTypeInfo());
  if (!table.emplace(name, value).second)
    fail(ErrorCode::kInvalidArgument, "initializer '{}': expected one of that name, found two", name);
}

}  // namespace

SessionOptions& SessionOptions::AddInitializer(const std::string& name, const Value& value) {
  add_tensor(initializers, name, value);
  return *this;
}

SessionOptions& SessionOptions::AddExternalInitializers(const std::vector<std::string>& names,
                                                        const std::vector<Value>& values) {
  if (names.size() != values.size())
    fail(ErrorCode::kInvalidArgument, "external initializers: {} names for {} values", names.size(),
         values.size());
  for (size_t i = 0; i < names.size(); ++i) add_tensor(external_initializers, names[i], values[i]);
  return *this;
}

SessionOptions& SessionOptions::AddExternalInitializersFromFilesInMemory(
    const std::vector<std::string>& file_names, const std::vector<char*>& buffers,
    const std::vector<size_t>& lengths) {
  if (file_names.size() != buffers.size() || file_names.size() != lengths.size())
    fail(ErrorCode::kInvalidArgument, "external files in memory: {} names for {} buffers and {} lengths",
         file_names.size(), buffers.size(), lengths.size());
  for (size_t i = 0; i < file_names.size(); ++i)
    external_files[file_names[i]] = std::as_bytes(std::span<const char>(buffers[i], lengths[i]));
  return *this;
}

}  // namespace plimsoll
