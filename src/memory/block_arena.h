// Memory for blocks of any size that come and go, in regions that are kept.
#pragma once

#include <mutex>

#include "memory/mapping.h"
#include "plimsoll/allocator.h"

namespace plimsoll {

// An ArenaCfg with every default filled in.
struct ArenaSettings {
  explicit ArenaSettings(const ArenaCfg& cfg);  // throws kInvalidArgument

  int64_t max_bytes;  // 0: none
  bool same_as_requested;
  int64_t first_region, most_dead, growth_after_shrink, most_growth;
};

// Blocks are split off regions, mappings that grow as the settings say, and merge with their free neighbours
// again. What is known of a block stands before it, nothing is on the heap. Regions are charged to `account`
// of the owner, whatever is in use of them. Any thread. Blocks must be given back before it dies.
class BlockArena {
 public:
  BlockArena(const ArenaSettings& settings, Budget& owner, Account account);
  BlockArena(const BlockArena&) = delete;
  ~BlockArena();

  // Aligned to 64 bytes, uninitialized. Throws kBudgetExceeded if a line or max_mem is in the way.
  std::byte* allocate(int64_t bytes);
  void free(void* data) noexcept;
  // What a block takes of the arena.
  static int64_t block_bytes(int64_t bytes);
  // Regions in which nothing is in use go back. As ONNX Runtime has it, arenas that double keep their first
  // one, unless `all`.
  void shrink(bool all = false) noexcept;
  ArenaStats stats() const;
  // The owner dies: its parent, which has been charged too, owns the regions from now on.
  void outlive(Budget& parent) noexcept;

 private:
  struct Block;
  struct Region;
  static constexpr int kBins = 48;

  Block* find(int64_t bytes) noexcept;
  Block* extend(int64_t bytes);
  Region* add_region(int64_t bytes);
  int64_t next_region(int64_t needed) const noexcept;
  void split(Block* block, int64_t bytes) noexcept;
  static void absorb_next(Block* block) noexcept;
  void link(Block* block) noexcept;
  void unlink(Block* block) noexcept;
  void release(Region* region) noexcept;
  static int bin_of(int64_t bytes) noexcept;

  const ArenaSettings settings_;
  const Account account_;
  mutable std::mutex mutex_;
  Budget* owner_;
  Region* regions_ = nullptr;  // the newest first
  Block* bins_[kBins] = {};    // free blocks by the power of two below their size
  int64_t next_growth_;
  ArenaStats stats_;
};

}  // namespace plimsoll
