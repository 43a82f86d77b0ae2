#include "samples.h"

#include <fmt/format.h>
#include <plimsoll/error.h>

#include <algorithm>
#include <filesystem>

#include "npy.h"
#include "tensor_pb.h"

namespace plimsoll::cli {

namespace fs = std::filesystem;

namespace {

// Names of inputs may have slashes, which files have not.
std::string file_stem(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

Value read(const fs::path& folder, const ValueInfo& info, size_t index) {
  const fs::path npy = folder / (file_stem(info.name) + ".npy"), pb = folder / (file_stem(info.name) + ".pb");
  if (fs::exists(npy)) return read_npy(npy.string());
  const fs::path numbered = folder / fmt::format("input_{}.pb", index);
  for (const fs::path& path : {pb, numbered}) {
    if (fs::exists(path)) return read_value_pb(path.string(), info.kind, info.type).value;
  }
  throw Error(ErrorCode::kIo,
              fmt::format("sample '{}': expected {}.npy, {}.pb or input_{}.pb for input '{}', found none",
                          folder.string(), file_stem(info.name), file_stem(info.name), index, info.name));
}

}  // namespace

SampleFolder::SampleFolder(const std::string& folder, const std::vector<ValueInfo>& inputs)
    : inputs_(inputs) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const bool is_single = inputs.size() == 1 && at->path().extension() == ".npy";
    if (at->is_directory() || is_single) paths_.push_back(at->path().string());
  }
  if (error) throw Error(ErrorCode::kIo, fmt::format("folder '{}': {}", folder, error.message()));
  if (paths_.empty())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("folder '{}': expected a folder per sample{}, found none", folder,
                            inputs.size() == 1 ? ", or a .npy file" : ""));
  std::sort(paths_.begin(), paths_.end());
}

bool SampleFolder::Next(std::map<std::string, Value>& sample) {
  if (next_ == paths_.size()) return false;
  const fs::path path = paths_[next_++];
  if (!fs::is_directory(path)) {
    sample[inputs_[0].name] = read_npy(path.string());
    return true;
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].has_default) sample[inputs_[i].name] = read(path, inputs_[i], i);
  }
  return true;
}

}  // namespace plimsoll::cli
