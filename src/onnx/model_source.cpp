#include "onnx/model_source.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>

#include "base/fail.h"

namespace plimsoll {
namespace {

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), std::free);
  if (resolved == nullptr)
    fail(ErrorCode::kIo, "file '{}': cannot be opened: {}", path, std::strerror(errno));
  return resolved.get();
}

bool has_parent_step(std::string_view path) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (path.substr(begin, end - begin) == "..") return true;
    begin = end + 1;
  }
  return false;
}

// The file's own path, once it is known to lie in the directory.
std::string resolve_inside(const std::string& directory, std::string_view location) {
  const auto reject = [&](const char* found) {
    fail(ErrorCode::kInvalidModel,
         "external data '{}': expected a file inside the model's directory, found {}", location, found);
  };
  if (location.empty()) reject("an empty path");
  if (location.front() == '/') reject("an absolute path");
  if (location.find('\0') != std::string_view::npos) reject("a path with a zero byte");
  if (has_parent_step(location)) reject("a path with '..'");
  std::string inside = real_path(directory);
  if (inside.back() != '/') inside += '/';
  std::string resolved = real_path(directory + "/" + std::string(location));
  if (resolved.compare(0, inside.size(), inside) != 0) reject("a link to somewhere else");
  return resolved;
}

}  // namespace

void ModelSource::open_model(const std::string& path, MappedFile::Access access, MappedFile::Admit admit) {
  access_ = access;
  admit_ = std::move(admit);
  files_.emplace_back(path, access, admit_);
  own_ = files_.back().bytes();
  if (folder_.empty()) folder_ = directory_of(path);
}

std::span<const std::byte> ModelSource::external(std::string_view location) {
  for (const Location& known : locations_) {
    if (known.name == location) return files_[known.file].bytes();
  }
  const std::string resolved = resolve_inside(folder_, location);
  size_t file = 0;
  while (file < files_.size() && files_[file].path() != resolved) ++file;
  if (file == files_.size()) files_.emplace_back(resolved, access_, admit_);
  locations_.push_back({std::string(location), file});
  return files_[file].bytes();
}

const MappedFile* ModelSource::file_of(std::span<const std::byte> range) const noexcept {
  const std::less_equal<const std::byte*> not_after;
  for (const MappedFile& file : files_) {
    const std::span<const std::byte> bytes = file.bytes();
    if (bytes.empty() || !not_after(bytes.data(), range.data())) continue;
    if (not_after(range.data() + range.size(), bytes.data() + bytes.size()))
      return file.is_mapped() ? &file : nullptr;
  }
  return nullptr;
}

void ModelSource::drop(std::span<const std::byte> range) const noexcept {
  const MappedFile* file = file_of(range);
  if (file != nullptr) file->drop(static_cast<size_t>(range.data() - file->bytes().data()), range.size());
}

void ModelSource::drop_all() const noexcept {
  for (const MappedFile& file : files_) {
    file.read_in_small_pages();
    file.drop(0, file.bytes().size());
  }
}

int64_t ModelSource::file_bytes() const {
  int64_t sum = 0;
  for (const MappedFile& file : files_) sum += static_cast<int64_t>(file.bytes().size());
  return sum;
}

}  // namespace plimsoll
