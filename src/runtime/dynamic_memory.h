// Memory for values whose size only the data tells: taken during a run, given back at its end.
#pragma once

#include <unordered_map>
#include <vector>

#include "graph/op_def.h"
#include "memory/mapping.h"

namespace plimsoll {

// Blocks are mappings of their own or pieces of a shared chunk; every byte is charged to `dynamic`
// before it is mapped, so that growth is refused before it crosses the line. One run at a time.
class DynamicMemory : public TextMemory {
 public:
  explicit DynamicMemory(Budget& budget) : budget_(budget) {}

  std::byte* allocate_block(int64_t bytes);
  void free_block(std::byte* block) noexcept;
  // A tensor with dims of its own, uninitialized.
  TensorView allocate_tensor(ElementType type, std::span<const int64_t> dims);
  // Frees what allocate_tensor made; other views are ignored.
  void free_tensor(TensorView& view) noexcept;
  char* allocate(size_t bytes) override;  // text lives until the end of the run

 private:
  static constexpr int64_t kChunk = 64 << 10;
  static constexpr int64_t kSmall = 4 << 10;  // larger blocks get a mapping of their own
  static size_t size_class(int64_t bytes);

  Budget& budget_;
  std::vector<Arena> chunks_;
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
  std::vector<std::byte*> free_lists_[8];
  std::unordered_map<std::byte*, size_t> small_;  // block -> size class
  std::unordered_map<std::byte*, Arena> large_;
  std::unordered_map<std::byte*, std::byte*> tensors_;  // data -> block
};

}  // namespace plimsoll
