// Memory for values whose size only the data tells: taken during a run, given back at its end.
#pragma once

#include "graph/op_def.h"
#include "memory/block_arena.h"

namespace plimsoll {

// A run's limit counts what it has of an arena, which is charged elsewhere: by as much it gets lower. Throws
// kBudgetExceeded.
void take_from_run(Budget& run, int64_t bytes);
void give_to_run(Budget& run, int64_t bytes) noexcept;

// Values are blocks: mappings of their own, or pieces of a shared chunk. Every byte is charged to `dynamic`
// before it is mapped, so that growth is refused before it crosses the line; what is known of a block stands
// in the block itself, nothing on the heap. With an arena, mappings are blocks of it, which has charged them:
// only the limit of the run is held to here. A block counts its owners: a view in a frame, an item of a list.
// One run at a time.
class DynamicMemory : public TextMemory {
 public:
  explicit DynamicMemory(Budget& run, BlockArena* arena = nullptr) : budget_(run), blocks_(arena) {}
  DynamicMemory(const DynamicMemory&) = delete;
  DynamicMemory& operator=(const DynamicMemory&) = delete;
  ~DynamicMemory() override;

  // A tensor with dims of its own, uninitialized. It has one owner.
  TensorView allocate_tensor(ElementType type, std::span<const int64_t> dims);
  // A sequence or a map with so many items, all absent at first. The list owns what is put into it.
  TensorView allocate_list(ValueKind kind, ElementType type, int64_t count);
  // One more owner of the value; of what is not counted a copy.
  TensorView share(const TensorView& value);
  // One owner less, the last one's block is used again; other views are ignored.
  void free(TensorView& value) noexcept;
  char* allocate(size_t bytes) override;  // text lives until the end of the run

 private:
  struct Block {
    uint32_t owners = 1;
    int32_t size_class = 0;  // kLarge: a mapping of its own
    Block* next = nullptr;   // of the free list
  };
  struct LargeBlock : Block {
    LargeBlock *before = nullptr, *after = nullptr;
    Arena arena;         // that the block itself is in
    int64_t pooled = 0;  // instead, what it takes of the arena's
  };
  static constexpr int32_t kLarge = -1;
  static constexpr int64_t kChunk = 64 << 10;
  static constexpr int64_t kSmall = 4 << 10;  // larger blocks get a mapping of their own
  static constexpr size_t kClasses = 7;       // 64 bytes to kSmall

  TensorView allocate_value(const TensorView& like, int64_t bytes);
  Block* take_small(int32_t size_class);
  LargeBlock* take_large(int64_t bytes);
  LargeBlock* take_pooled(int64_t bytes);
  void release(LargeBlock* block) noexcept;
  static Block* block_of(const TensorView& value);

  Budget& budget_;
  BlockArena* blocks_;
  LargeBlock* large_ = nullptr;  // chunks among them
  std::byte *next_ = nullptr, *end_ = nullptr;
  char *text_next_ = nullptr, *text_end_ = nullptr;
  Block* free_lists_[kClasses] = {};
};

}  // namespace plimsoll
