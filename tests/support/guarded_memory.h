// Memory that ends where a page begins that nobody may touch.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace plimsoll {

// `bytes` bytes, filled with 0xff (NaN, -1, true), as far back as the alignment allows. A read or a write
// behind the last whole page is a signal; one in the few bytes around shows in is_intact().
class GuardedMemory {
 public:
  explicit GuardedMemory(size_t bytes, size_t alignment = 1) : bytes_(bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    room_ = (bytes + alignment + page - 1) / page * page;
    void* mapping = mmap(nullptr, room_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) throw std::bad_alloc();
    start_ = static_cast<std::byte*>(mapping);
    mprotect(start_ + room_, page, PROT_NONE);
    mapped_ = room_ + page;
    data_ = start_ + (room_ - bytes) / alignment * alignment;
    std::memset(start_, kMark, room_);
    if (bytes > 0) std::memset(data_, 0xff, bytes);
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory(GuardedMemory&& other) noexcept
      : start_(other.start_),
        data_(other.data_),
        bytes_(other.bytes_),
        room_(other.room_),
        mapped_(other.mapped_) {
    other.start_ = nullptr;
  }
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() {
    if (start_ != nullptr) munmap(start_, mapped_);
  }

  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }
  bool is_intact() const {
    const auto marked = [](std::byte b) { return b == std::byte{kMark}; };
    return std::all_of(start_, data_, marked) && std::all_of(data_ + bytes_, start_ + room_, marked);
  }

 private:
  static constexpr unsigned char kMark = 0xA5;
  std::byte* start_ = nullptr;
  std::byte* data_ = nullptr;
  size_t bytes_, room_ = 0, mapped_ = 0;
};

}  // namespace plimsoll
