// A temporary directory on disk, for machines where the job cannot have one in memory of its own.
#pragma once

#include <string>

namespace plimsoll::sandbox {

// Removed with everything in it when the object goes. Its owner holds a lock on it, so that a successor
// finds and removes what an owner that was killed left behind.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::string& parent);  // throws kIo
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int descriptor_ = -1;
  int owner_ = 0;  // a child of fork() removes nothing
};

// Where TemporaryDirectory puts its directories: TMPDIR, or /tmp.
std::string temporary_parent();
// Removes the directories in `parent` whose owners are gone. Returns how many there were.
int remove_leftover_directories(const std::string& parent) noexcept;
// Removes a directory and what is in it, however deep; follows no link. False if something stayed.
bool remove_tree(const std::string& path) noexcept;

}  // namespace plimsoll::sandbox
