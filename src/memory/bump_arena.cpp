#include "memory/bump_arena.h"

#include <algorithm>
#include <cstdint>

#include "base/checked.h"

namespace plimsoll {
namespace {
constexpr int64_t kFirstChunk = 32 << 10;
constexpr int64_t kLargestChunk = 1 << 20;
}  // namespace

void* BumpArena::allocate(size_t size, size_t alignment) {
  if (is_large(size)) {  // a mapping is aligned to pages
    large_.reserve(large_.size() + 1);
    large_.emplace_back(*budget_, account_, static_cast<int64_t>(size));
    mapped_ += large_.back().size();
    return large_.back().data();
  }
  auto aligned = [&](std::byte* p) {
    return reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(p) + alignment - 1) & ~(alignment - 1));
  };
  std::byte* start = aligned(next_);
  if (next_ == nullptr || start > end_ || static_cast<size_t>(end_ - start) < size) {
    const int64_t growth = std::clamp(mapped_ / 2, kFirstChunk, kLargestChunk);
    const int64_t chunk = std::max<int64_t>(round_up(static_cast<int64_t>(size + alignment), page_bytes()),
                                            round_up(growth, page_bytes()));
    start = aligned(add_chunk(chunk));
  }
  next_ = start + size;
  return start;
}

std::byte* BumpArena::add_chunk(int64_t size) {
  chunks_.reserve(chunks_.size() + 1);
  Arena memory(*budget_, account_, size);
  if (!chunks_.empty()) chunks_.back().end = next_;
  chunks_.push_back({std::move(memory)});
  mapped_ += size;
  next_ = chunks_.back().memory.data();
  end_ = next_ + size;
  return next_;
}

std::vector<std::span<const std::byte>> BumpArena::pieces() const {
  std::vector<std::span<const std::byte>> found;
  for (const Chunk& chunk : chunks_) {
    const std::byte* end = &chunk == &chunks_.back() ? next_ : chunk.end;
    found.emplace_back(chunk.memory.data(), end);
  }
  for (const Arena& one : large_) found.emplace_back(one.data(), static_cast<size_t>(one.size()));
  return found;
}

std::span<std::byte> BumpArena::adopt(size_t size, size_t room) {
  std::byte* begin =
      add_chunk(round_up(checked_add(static_cast<int64_t>(size), static_cast<int64_t>(room)), page_bytes()));
  next_ = begin + size;
  return {begin, size};
}

void BumpArena::release(const void* large) noexcept {
  const auto found =
      std::find_if(large_.begin(), large_.end(), [&](const Arena& a) { return a.data() == large; });
  if (found == large_.end()) return;
  mapped_ -= found->size();
  large_.erase(found);
}

int64_t BumpArena::bytes_to_release(const void* large) const noexcept {
  const auto found =
      std::find_if(large_.begin(), large_.end(), [&](const Arena& a) { return a.data() == large; });
  return found == large_.end() ? 0 : found->size();
}

}  // namespace plimsoll
