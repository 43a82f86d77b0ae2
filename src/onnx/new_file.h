// A file that appears whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll::onnx {

// Writes a file without a name, which sync() names and commit() renames into place; where the file system has
// none, one beside `path`. Without commit nothing is left. A target that is no regular file (a pipe,
// /dev/null) is written in place. Throws kIo.
class NewFile {
 public:
  explicit NewFile(const std::string& path);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();
  void write(std::string_view bytes);
  void sync();    // to the disk, so that a full one is noticed before commit
  void commit();  // after sync()

 private:
  template <typename Make>  // bool(name), with errno: tries names until one is free
  void make_named(Make make);
  [[noreturn]] void fail_with(const char* action, int error) const;
  std::string path_, partial_;
  int fd_ = -1;
  bool is_special_ = false;
};

// Removes what writers of `path` left beside it when they were killed. What a process that lives may be
// writing stays.
void remove_abandoned(const std::string& path) noexcept;

}  // namespace plimsoll::onnx
