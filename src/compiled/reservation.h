#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plimsoll {

// Addresses without memory: whoever reads or writes there ends the process.
class Reservation {
 public:
  explicit Reservation(int64_t size);  // throws kOutOfMemory
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation();
  std::span<const std::byte> addresses() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace plimsoll
