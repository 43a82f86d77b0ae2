// The bytes of a new file, written through a mapping.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/descriptor.h"

namespace plimsoll {

// Of `size` bytes, zeros at first, all of which the disk has room for. Under a name of its own until
// commit(); without it nothing is left. Throws kIo.
class FileWriter {
 public:
  FileWriter(const std::string& path, size_t size);
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();

  std::span<std::byte> bytes() const { return {data_, size_}; }
  void put(size_t offset, std::span<const std::byte> bytes);
  void grow(size_t size);                                  // by zeros
  const std::string& partial() const { return partial_; }  // its name until commit()
  void commit();

 private:
  [[noreturn]] void fail_with(const char* action, int error) const;

  std::string path_, partial_;
  Descriptor file_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace plimsoll
