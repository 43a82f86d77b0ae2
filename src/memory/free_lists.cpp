#include "memory/free_lists.h"

#include <algorithm>
#include <bit>
#include <new>

namespace plimsoll {
namespace {
constexpr size_t kMostAlignment = 64;

size_t bits_of(size_t bytes) {
  return static_cast<size_t>(std::bit_width(bytes - 1));
}
}  // namespace

void* FreeLists::do_allocate(size_t bytes, size_t alignment) {
  const size_t bits = bits_of(std::max({bytes, alignment, size_t{1} << kSmallestBits}));
  if (bits > kLargestBits || alignment > kMostAlignment) return upstream_->allocate(bytes, alignment);
  if (Block* block = free_[bits]) {
    free_[bits] = block->next;
    return block;
  }
  return upstream_->allocate(size_t{1} << bits, std::min(size_t{1} << bits, kMostAlignment));
}

void FreeLists::do_deallocate(void* data, size_t bytes, size_t alignment) {
  const size_t bits = bits_of(std::max({bytes, alignment, size_t{1} << kSmallestBits}));
  if (bits > kLargestBits || alignment > kMostAlignment) return upstream_->deallocate(data, bytes, alignment);
  free_[bits] = ::new (data) Block{free_[bits]};
}

}  // namespace plimsoll
