// A file without a name that holds what was quantized until the model is written: weights of any size pass
// through little memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace plimsoll {

// Parts live as long as the file does. Room on the disk is taken first, so that a full one is an Error (kIo)
// and never a signal. Not thread-safe.
class SpillFile {
 public:
  // In the folder of `path`, where what it holds is to be written.
  explicit SpillFile(const std::string& path);
  // For a plan: no file; what is written to a part is gone when the part is settled.
  SpillFile() = default;
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;
  ~SpillFile();

  // Zeros, at the start of a page.
  std::span<std::byte> take(int64_t bytes);
  // Lets go of the pages of a part that is filled; they are read again when they are needed.
  void settle(std::span<const std::byte> part) const noexcept;
  int64_t bytes() const { return size_; }

 private:
  std::string folder_;
  Descriptor file_;
  int64_t size_ = 0;
  std::vector<std::span<std::byte>> parts_;
};

}  // namespace plimsoll
