// What is behind an Allocator, and blocks of an arena that own themselves.
#pragma once

#include "memory/block_arena.h"
#include "plimsoll/allocator.h"

namespace plimsoll {

struct Allocator::Impl {
  std::shared_ptr<BlockArena> arena;  // null: the heap
};

// An arena that keeps the budget alive that it is charged to in the end. `owner` is that one or below it.
std::shared_ptr<BlockArena> make_arena(const ArenaCfg& settings, std::shared_ptr<Budget> kept, Budget& owner);

// Gives its block back when it dies. Movable.
class ArenaBlock {
 public:
  ArenaBlock() = default;
  ArenaBlock(std::shared_ptr<BlockArena> arena, int64_t bytes) : arena_(std::move(arena)) {
    data_ = arena_->allocate(bytes);
  }
  ArenaBlock(ArenaBlock&& other) noexcept
      : arena_(std::move(other.arena_)), data_(std::exchange(other.data_, nullptr)) {}
  ArenaBlock& operator=(ArenaBlock&& other) noexcept {
    std::swap(arena_, other.arena_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~ArenaBlock() {
    if (data_ != nullptr) arena_->free(data_);
  }
  std::byte* data() const { return data_; }

 private:
  std::shared_ptr<BlockArena> arena_;
  std::byte* data_ = nullptr;
};

}  // namespace plimsoll
