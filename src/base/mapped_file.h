// A file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/descriptor.h"

namespace plimsoll {

// Maps the pages of what is about to be read, or written, at once instead of one fault after the other. A
// kernel before 5.14 refuses, and they come one by one.
void populate_for_reading(std::span<const std::byte> bytes) noexcept;
void populate_for_writing(std::span<std::byte> bytes) noexcept;

// Owns one mapping; movable, not copyable. The bytes stay valid as long as the object lives. Somebody
// who truncates the file meanwhile kills the process with SIGBUS; `Access::kRead` copies the file
// into anonymous memory instead and is immune.
class MappedFile {
 public:
  enum class Access { kMap, kRead };
  // Told how many bytes of memory are about to be taken (kRead); may throw.
  using Admit = std::function<void(int64_t bytes)>;
  // Throws kIo if the file cannot be opened, is a directory, or cannot be mapped.
  explicit MappedFile(const std::string& path, Access access = Access::kMap, const Admit& admit = {});
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  bool is_mapped() const { return access_ == Access::kMap; }
  // Drops the pages of [offset, offset + size) from this process, and those that came with them; reading them
  // again reads the file. With Access::kRead the pages would be lost, so the call does nothing.
  void drop(size_t offset, size_t size) const noexcept;
  // Whether read() works: a mapped file of a MiB or more stays open for it.
  bool is_open() const { return static_cast<bool>(open_); }
  // Copies bytes of the file without mapping a page. Throws kIo if they cannot be read.
  void read(size_t offset, std::span<std::byte> to) const;
  // From now on a page that is touched brings its neighbours of some 64 KiB, and not all of a large page of
  // the cache, which is up to 2 MiB.
  void read_in_small_pages() const noexcept;

 private:
  std::string path_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  Access access_ = Access::kMap;
  Descriptor open_;
};

}  // namespace plimsoll
