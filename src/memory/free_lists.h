// Small blocks that are taken and given back often, and their memory as long as this lives.
#pragma once

#include <array>
#include <cstddef>
#include <memory_resource>

namespace plimsoll {

// Blocks of powers of two up to 16 KiB are kept for the next who asks; what they lie in is the upstream's,
// which must free it by itself at its end (ChargedResource does). Larger ones come from there and go back at
// once. An upstream that fails changes nothing here: libstdc++'s pools (GCC 12) go on with a chunk that they
// did not get. Not thread-safe.
class FreeLists : public std::pmr::memory_resource {
 public:
  explicit FreeLists(std::pmr::memory_resource& upstream) : upstream_(&upstream) {}
  FreeLists(const FreeLists&) = delete;

 private:
  struct Block {
    Block* next;
  };
  static constexpr int kSmallestBits = 4, kLargestBits = 14;

  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* data, size_t bytes, size_t alignment) override;
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::pmr::memory_resource* upstream_;
  std::array<Block*, kLargestBits + 1> free_{};  // by the logarithm of their size
};

}  // namespace plimsoll
