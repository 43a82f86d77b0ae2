#include "memory/block_arena.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/checked.h"
#include "base/fail.h"

namespace plimsoll {
namespace {

constexpr int64_t kAlignment = 64;

int64_t or_default(int64_t value, int64_t otherwise, const char* name) {
  if (value == -1) return otherwise;
  if (value < 0)
    fail(ErrorCode::kInvalidArgument, "arena: {}: expected 0 or more bytes, found {}", name, value);
  return value;
}

}  // namespace

ArenaSettings::ArenaSettings(const ArenaCfg& cfg)
    : max_bytes(or_default(cfg.max_mem, 0, "max_mem")),
      same_as_requested(cfg.arena_extend_strategy == 1),
      first_region(or_default(cfg.initial_chunk_size_bytes, 1 << 20, "initial_chunk_size_bytes")),
      most_dead(or_default(cfg.max_dead_bytes_per_chunk, 128 << 20, "max_dead_bytes_per_chunk")),
      growth_after_shrink(
          or_default(cfg.initial_growth_chunk_size_bytes, 2 << 20, "initial_growth_chunk_size_bytes")),
      most_growth(or_default(cfg.max_power_of_two_extend_bytes, 1 << 30, "max_power_of_two_extend_bytes")) {
  if (cfg.arena_extend_strategy < -1 || cfg.arena_extend_strategy > 1)
    fail(ErrorCode::kInvalidArgument,
         "arena: arena_extend_strategy: expected 0 (kNextPowerOfTwo) or 1 (kSameAsRequested), found {}",
         cfg.arena_extend_strategy);
}

// What stands before the memory of a block.
struct alignas(kAlignment) BlockArena::Block {
  int64_t bytes = 0;        // with this header
  Block* before = nullptr;  // in the region
  Region* region = nullptr;
  Block *next_free = nullptr, *previous_free = nullptr;  // of its bin
  bool in_use = false;
};

struct alignas(kAlignment) BlockArena::Region {
  Mapping mapping;  // that this itself is in
  Region *next = nullptr, *previous = nullptr;
  bool is_first = false;

  std::byte* begin() { return reinterpret_cast<std::byte*>(this) + sizeof(Region); }
  std::byte* end() { return reinterpret_cast<std::byte*>(this) + mapping.size(); }
  Block* first_block() { return reinterpret_cast<Block*>(begin()); }
  bool is_free() { return !first_block()->in_use && first_block()->bytes == end() - begin(); }
  Block* after(Block* block) {
    std::byte* next_block = reinterpret_cast<std::byte*>(block) + block->bytes;
    return next_block == end() ? nullptr : reinterpret_cast<Block*>(next_block);
  }
};

BlockArena::BlockArena(const ArenaSettings& settings, Budget& owner, Account account)
    : settings_(settings), account_(account), owner_(&owner), next_growth_(settings.first_region) {
  stats_.limit = settings.max_bytes;
}

BlockArena::~BlockArena() {
  while (regions_ != nullptr) release(regions_);
}

int BlockArena::bin_of(int64_t bytes) noexcept {
  return std::min(kBins - 1, static_cast<int>(std::bit_width(static_cast<uint64_t>(bytes))) - 1);
}

int64_t BlockArena::block_bytes(int64_t bytes) {
  return round_up(checked_add(bytes, sizeof(Block)), kAlignment);
}

void BlockArena::link(Block* block) noexcept {
  Block*& head = bins_[bin_of(block->bytes)];
  block->previous_free = nullptr;
  block->next_free = head;
  if (head != nullptr) head->previous_free = block;
  head = block;
}

void BlockArena::unlink(Block* block) noexcept {
  if (block->previous_free != nullptr) {
    block->previous_free->next_free = block->next_free;
  } else {
    bins_[bin_of(block->bytes)] = block->next_free;
  }
  if (block->next_free != nullptr) block->next_free->previous_free = block->previous_free;
  block->next_free = block->previous_free = nullptr;
}

// The smallest that is large enough, of the first bin that has one.
BlockArena::Block* BlockArena::find(int64_t bytes) noexcept {
  for (int bin = bin_of(bytes); bin < kBins; ++bin) {
    Block* best = nullptr;
    for (Block* block = bins_[bin]; block != nullptr; block = block->next_free) {
      if (block->bytes >= bytes && (best == nullptr || block->bytes < best->bytes)) best = block;
    }
    if (best != nullptr) return best;
  }
  return nullptr;
}

int64_t BlockArena::next_region(int64_t needed) const noexcept {
  if (settings_.same_as_requested) return needed;
  int64_t bytes = std::max<int64_t>(next_growth_, 1);
  while (bytes < needed && bytes < settings_.most_growth) bytes = std::min(2 * bytes, settings_.most_growth);
  return std::max(bytes, needed);
}

BlockArena::Region* BlockArena::add_region(int64_t bytes) {
  Charge charge(*owner_, account_, bytes);
  Mapping mapping(bytes);
  charge.keep();
  auto* region = new (mapping.data()) Region;
  region->mapping = std::move(mapping);
  region->is_first = regions_ == nullptr;
  region->next = regions_;
  if (regions_ != nullptr) regions_->previous = region;
  regions_ = region;
  stats_.total_allocated += region->mapping.size();
  ++stats_.num_arena_extensions;
  auto* block = new (region->begin()) Block;
  block->bytes = region->end() - region->begin();
  block->region = region;
  link(block);
  return region;
}

// What the strategy asks for, or just what is needed if there is no room for that.
BlockArena::Block* BlockArena::extend(int64_t bytes) {
  const int64_t needed = round_up(checked_add(bytes, sizeof(Region)), page_bytes());
  const int64_t room = settings_.max_bytes == 0 ? INT64_MAX : settings_.max_bytes - stats_.total_allocated;
  if (needed > room)
    fail(ErrorCode::kBudgetExceeded,
         "arena: {} bytes more would cross its max_mem of {} bytes ({} held, {} in use)", needed,
         settings_.max_bytes, stats_.total_allocated, stats_.in_use);
  const int64_t wanted = std::max(
      needed, std::min(round_up(next_region(needed), page_bytes()), room / page_bytes() * page_bytes()));
  Region* region = nullptr;
  try {
    region = add_region(wanted);
  } catch (const Error& error) {
    if (wanted == needed || error.code() != ErrorCode::kBudgetExceeded) throw;
    region = add_region(needed);
  }
  next_growth_ = std::min(2 * next_region(needed), settings_.most_growth);
  return region->first_block();
}

// A rest that is large enough to serve somebody becomes a block of its own.
void BlockArena::split(Block* block, int64_t bytes) noexcept {
  const int64_t rest = block->bytes - bytes;
  const bool is_worth_it = rest >= bytes || rest > settings_.most_dead;
  if (!is_worth_it || rest < 2 * static_cast<int64_t>(sizeof(Block))) return;
  Block* after = block->region->after(block);
  auto* second = new (reinterpret_cast<std::byte*>(block) + bytes) Block;
  second->bytes = rest;
  second->before = block;
  second->region = block->region;
  block->bytes = bytes;
  if (after != nullptr) after->before = second;
  link(second);
}

void BlockArena::absorb_next(Block* block) noexcept {
  block->bytes += block->region->after(block)->bytes;
  if (Block* after = block->region->after(block)) after->before = block;
}

std::byte* BlockArena::allocate(int64_t bytes) {
  const int64_t needed = block_bytes(bytes);
  const std::lock_guard lock(mutex_);
  Block* block = find(needed);
  if (block == nullptr) block = extend(needed);
  unlink(block);
  split(block, needed);
  block->in_use = true;
  ++stats_.num_allocs;
  stats_.in_use += block->bytes;
  stats_.max_in_use = std::max(stats_.max_in_use, stats_.in_use);
  stats_.max_alloc_size = std::max(stats_.max_alloc_size, block->bytes);
  return reinterpret_cast<std::byte*>(block) + sizeof(Block);
}

void BlockArena::free(void* data) noexcept {
  if (data == nullptr) return;
  auto* block = reinterpret_cast<Block*>(static_cast<std::byte*>(data) - sizeof(Block));
  const std::lock_guard lock(mutex_);
  stats_.in_use -= block->bytes;
  block->in_use = false;
  if (Block* next = block->region->after(block); next != nullptr && !next->in_use) {
    unlink(next);
    absorb_next(block);
  }
  if (Block* before = block->before; before != nullptr && !before->in_use) {
    unlink(before);
    absorb_next(before);
    block = before;
  }
  link(block);
}

void BlockArena::release(Region* region) noexcept {
  (region->previous != nullptr ? region->previous->next : regions_) = region->next;
  if (region->next != nullptr) region->next->previous = region->previous;
  stats_.total_allocated -= region->mapping.size();
  owner_->release(account_, region->mapping.size());
  const Mapping mapping = std::move(region->mapping);  // leaves the memory that it is about to unmap
  region->~Region();
}

void BlockArena::shrink(bool all) noexcept {
  const std::lock_guard lock(mutex_);
  for (Region* region = regions_; region != nullptr;) {
    Region* next = region->next;
    if (region->is_free() && (all || settings_.same_as_requested || !region->is_first)) {
      unlink(region->first_block());
      release(region);
    }
    region = next;
  }
  ++stats_.num_arena_shrinkages;
  next_growth_ = regions_ == nullptr ? settings_.first_region : settings_.growth_after_shrink;
}

ArenaStats BlockArena::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void BlockArena::outlive(Budget& parent) noexcept {
  const std::lock_guard lock(mutex_);
  owner_ = &parent;
}

}  // namespace plimsoll
