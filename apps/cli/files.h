// Whole files: read into memory, written all or not at all.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::cli {

// Throws kIo.
std::string read_file(const std::string& path);
// None if it is no regular file, or not there.
std::optional<size_t> regular_file_size(const std::string& path);
// From `offset` on, until `to` is full or the file ends; how many bytes there were. Throws kIo.
size_t read_part(const std::string& path, size_t offset, std::span<char> to);

// A regular file's bytes where the system has them, as long as this lives and nobody cuts it short. None if
// it cannot be mapped: reading it tells why.
class FileMapping {
 public:
  static std::shared_ptr<FileMapping> of(const std::string& path);
  FileMapping(const FileMapping&) = delete;
  ~FileMapping();
  std::span<char> bytes() const { return bytes_; }  // to be read only

 private:
  explicit FileMapping(std::span<char> bytes) : bytes_(bytes) {}
  std::span<char> bytes_;
};
// A descriptor by name, such as /dev/stdout: whatever it is, it is written to, not replaced.
bool is_descriptor(const std::string& path);
// Of the descriptor of ours that `path` names, such as /dev/stdout: both write on from the same place, so
// that neither overwrites what the other wrote. -1: it names none, or a pipe, which has no place.
int duplicate_descriptor(const std::string& path);
// Throws kIo if nothing can be written there, as far as that can be known without writing.
void check_can_write(const std::string& path);

// What a command writes by the option of that name; "" is nothing.
struct NamedOutput {
  const char* option;
  const std::string& path;
};
// Throws UsageError where one is the model that is read, or two are the same file.
void check_outputs(const std::string& model, std::initializer_list<NamedOutput> outputs);

// Files that appear together: each is written beside its final name, commit() renames them all. What was not
// committed is removed, directories too, if they are empty. A target that is no regular file (/dev/null) or a
// descriptor of ours (/dev/stdout) is written in place; of a symbolic link the file that it names is
// replaced, or made. Who may read it stays as it was.
class NewFiles {
 public:
  NewFiles() = default;
  NewFiles(const NewFiles&) = delete;
  ~NewFiles();
  // The contents are the pieces one after the other. Throws kIo.
  void add(const std::string& path, const std::vector<std::string_view>& pieces);
  // It is made if it is not there and its parent is. Throws kIo where files could not be made in it.
  void add_directory(const std::string& path);
  void commit();

 private:
  struct Pending {
    std::string temporary, path;
  };
  std::vector<Pending> pending_;
  std::vector<std::string> made_;  // directories
};

}  // namespace plimsoll::cli
