#include "temporary_directory.h"

#include <fmt/core.h>
#include <plimsoll/error.h>
#include <stdlib.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace plimsoll::cli {

namespace fs = std::filesystem;

TemporaryDirectory::TemporaryDirectory(const char* name) {
  std::error_code error;
  const std::string place = fs::temp_directory_path(error).string();
  std::string pattern = (fs::path(place) / fmt::format("plimsoll-{}-XXXXXX", name)).string();
  if (!error && ::mkdtemp(pattern.data()) == nullptr) error.assign(errno, std::generic_category());
  if (error)
    throw Error(ErrorCode::kIo, fmt::format("cannot make a temporary directory in {}: {}",
                                            place.empty() ? "what TMPDIR names" : place, error.message()));
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace plimsoll::cli
