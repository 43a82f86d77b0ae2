// The files behind a model: its own and those of its external data.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"

namespace plimsoll {

// Owns the mappings. Tensor data of a Graph points into them: keep the source as long as the Graph.
// Movable. Reading is thread-safe, opening is not.
class ModelSource {
 public:
  ModelSource() = default;
  explicit ModelSource(const std::string& path) { open_model(path, MappedFile::Access::kMap, {}); }

  // Throws kIo if the model's file cannot be read. External data is looked for beside it, unless a folder is
  // set.
  void open_model(const std::string& path, MappedFile::Access access, MappedFile::Admit admit);
  // Where external data is.
  void set_folder(const std::string& folder) { folder_ = folder; }

  // Bytes of the model's own file.
  std::span<const std::byte> model() const { return own_; }
  // Bytes of an external data file, opened at its first use. `location` must be a relative path that
  // stays inside the model's directory, symbolic links included; throws kInvalidModel or kIo.
  std::span<const std::byte> external(std::string_view location);
  // Whether the bytes are pages of files, which drop() can let go.
  bool is_mapped() const { return access_ == MappedFile::Access::kMap; }
  // The mapped file that holds the range; null if none does.
  const MappedFile* file_of(std::span<const std::byte> range) const noexcept;
  // Lets go of the pages of `range` and of what came with them, whichever file holds it; reading them again
  // reads the file. Does nothing for a range of no file.
  void drop(std::span<const std::byte> range) const noexcept;
  // The same for all files: what was read of them is in the Graph. What is read later comes in small pages.
  void drop_all() const noexcept;
  // Bytes of all files together.
  int64_t file_bytes() const;

 private:
  struct Location {
    std::string name;
    size_t file;
  };
  std::string folder_;
  std::span<const std::byte> own_;
  MappedFile::Access access_ = MappedFile::Access::kMap;
  MappedFile::Admit admit_;
  std::deque<MappedFile> files_;  // tensors point to them
  std::vector<Location> locations_;
};

}  // namespace plimsoll
