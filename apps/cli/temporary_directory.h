// A directory that is gone, with all that is in it, when its object is.
#pragma once

#include <filesystem>

namespace plimsoll::cli {

class TemporaryDirectory {
 public:
  // plimsoll-NAME-... in TMPDIR, or /tmp. Throws kIo.
  explicit TemporaryDirectory(const char* name);
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace plimsoll::cli
