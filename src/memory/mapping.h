// Anonymous memory straight from the operating system, so that it can go straight back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "memory/budget.h"

namespace plimsoll {

int64_t page_bytes() noexcept;

// Owns one private anonymous mapping of `size` bytes rounded up to pages, zero-filled; of a large one, the
// huge pages are not yet resident. Movable. With `guard` an inaccessible page follows it.
class Mapping {
 public:
  Mapping() = default;
  explicit Mapping(int64_t size, bool guard = false);  // throws kOutOfMemory
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }  // a multiple of the page
  // Whoever unmaps it is somebody else from now on.
  std::byte* release() noexcept { return std::exchange(data_, nullptr); }
  // Gives the resident pages back and keeps the addresses.
  void discard() noexcept;

 private:
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
  int64_t guard_ = 0;
};

// A mapping that is charged to an account first: nothing is mapped if the line would be crossed.
class Arena {
 public:
  Arena() = default;
  Arena(Budget& budget, Account account, int64_t size, bool guard = false)
      : charge_(budget, account, (size + page_bytes() - 1) / page_bytes() * page_bytes()),
        mapping_(size, guard) {}
  std::byte* data() const { return mapping_.data(); }
  int64_t size() const { return mapping_.size(); }
  void discard() noexcept { mapping_.discard(); }

 private:
  Charge charge_;
  Mapping mapping_;
};

}  // namespace plimsoll
