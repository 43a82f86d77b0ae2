#include "runtime/dynamic_memory.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/checked.h"

namespace plimsoll {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kBackPointer = sizeof(void*);  // just before the data: the block that it is in

}  // namespace

void take_from_run(Budget& run, int64_t bytes) {
  const int64_t limit = run.limit_bytes();
  if (limit == 0) return;
  const int64_t left = limit - run.report().now_bytes;
  if (bytes >= left)
    fail(ErrorCode::kBudgetExceeded,
         "run: {} bytes of the arena would cross the run's limit, of which {} bytes are left", bytes, left);
  run.set_limit_bytes(limit - bytes);
}

void give_to_run(Budget& run, int64_t bytes) noexcept {
  if (run.limit_bytes() > 0) run.set_limit_bytes(run.limit_bytes() + bytes);
}

DynamicMemory::~DynamicMemory() {
  while (large_ != nullptr) {
    LargeBlock* block = large_;
    large_ = block->after;
    release(block);
  }
}

// The arena leaves the memory that it is about to unmap.
void DynamicMemory::release(LargeBlock* block) noexcept {
  const int64_t pooled = block->pooled;
  const Arena arena = std::move(block->arena);
  block->~LargeBlock();
  if (pooled == 0) return;
  blocks_->free(block);
  give_to_run(budget_, pooled);
}

DynamicMemory::LargeBlock* DynamicMemory::take_pooled(int64_t bytes) {
  const int64_t pooled = BlockArena::block_bytes(bytes);
  take_from_run(budget_, pooled);
  try {
    auto* block = new (blocks_->allocate(bytes)) LargeBlock;
    block->pooled = pooled;
    return block;
  } catch (...) {
    give_to_run(budget_, pooled);
    throw;
  }
}

DynamicMemory::LargeBlock* DynamicMemory::take_large(int64_t bytes) {
  LargeBlock* block = nullptr;
  if (blocks_ != nullptr) {
    block = take_pooled(bytes);
  } else {
    Arena arena(budget_, Account::kDynamic, bytes);
    block = new (arena.data()) LargeBlock;
    block->arena = std::move(arena);
  }
  block->size_class = kLarge;
  block->after = large_;
  if (large_ != nullptr) large_->before = block;
  return large_ = block;
}

DynamicMemory::Block* DynamicMemory::take_small(int32_t size_class) {
  Block*& list = free_lists_[size_class];
  void* memory = list;
  if (list != nullptr) {
    list = list->next;
  } else {
    const int64_t size = kAlignment << size_class;
    if (end_ - next_ < size) {
      std::byte* chunk = reinterpret_cast<std::byte*>(take_large(kChunk));
      next_ = chunk + round_up(static_cast<int64_t>(sizeof(LargeBlock)), kAlignment);
      end_ = chunk + kChunk;
    }
    memory = next_;
    next_ += size;
  }
  auto* block = new (memory) Block;
  block->size_class = size_class;
  return block;
}

TensorView DynamicMemory::allocate_value(const TensorView& like, int64_t bytes) {
  const auto dims_bytes = static_cast<int64_t>(like.dims.size_bytes());
  const auto prefix = [&](size_t header) {
    return round_up(static_cast<int64_t>(header) + dims_bytes + kBackPointer, kAlignment);
  };
  const int64_t small = checked_add(prefix(sizeof(Block)), bytes);
  Block* block = nullptr;
  int64_t header = sizeof(Block);
  if (small <= kSmall) {
    int32_t size_class = 0;
    while ((kAlignment << size_class) < small) ++size_class;
    block = take_small(size_class);
  } else {
    header = sizeof(LargeBlock);
    block = take_large(checked_add(prefix(sizeof(LargeBlock)), bytes));
  }
  std::byte* start = reinterpret_cast<std::byte*>(block);
  auto* own_dims = reinterpret_cast<int64_t*>(start + header);
  std::copy(like.dims.begin(), like.dims.end(), own_dims);
  TensorView view = like;
  view.packed = false;
  view.counted = true;
  view.dims = {own_dims, like.dims.size()};
  view.data = start + prefix(static_cast<size_t>(header));
  std::memcpy(view.data - kBackPointer, &block, sizeof block);
  return view;
}

DynamicMemory::Block* DynamicMemory::block_of(const TensorView& value) {
  Block* block = nullptr;
  std::memcpy(&block, value.data - kBackPointer, sizeof block);
  return block;
}

TensorView DynamicMemory::allocate_tensor(ElementType type, std::span<const int64_t> dims) {
  const TensorView like{nullptr, type, false, dims};
  return allocate_value(like, like.bytes());
}

TensorView DynamicMemory::allocate_list(ValueKind kind, ElementType type, int64_t count) {
  TensorView like{nullptr, type, false, {&count, 1}};
  like.kind = kind;
  const TensorView list = allocate_value(like, checked_mul(count, sizeof(TensorView)));
  for (TensorView& item : list.items()) new (&item) TensorView;
  return list;
}

TensorView DynamicMemory::share(const TensorView& value) {
  if (value.is_none()) return value;
  if (value.counted) {
    ++block_of(value)->owners;
    return value;
  }
  if (!value.is_list()) {
    const TensorView copy = allocate_tensor(value.type, value.dims);
    if (const int64_t bytes = value.bytes(); bytes > 0)
      std::memcpy(copy.data, value.data, static_cast<size_t>(bytes));
    return copy;
  }
  const TensorView copy = allocate_list(value.kind, value.type, value.dims[0]);
  for (size_t i = 0; i < copy.items().size(); ++i) copy.items()[i] = share(value.items()[i]);
  return copy;
}

void DynamicMemory::free(TensorView& value) noexcept {
  if (!value.counted) return;
  Block* block = block_of(value);
  const TensorView freed = value;
  value.counted = false;
  value.data = nullptr;
  if (--block->owners > 0) return;
  if (freed.is_list()) {
    for (TensorView& item : freed.items()) free(item);
  }
  if (block->size_class != kLarge) {
    block->next = free_lists_[block->size_class];
    free_lists_[block->size_class] = block;
    return;
  }
  auto* large = static_cast<LargeBlock*>(block);
  if (large->before != nullptr) large->before->after = large->after;
  if (large->after != nullptr) large->after->before = large->before;
  if (large_ == large) large_ = large->after;
  release(large);
}

char* DynamicMemory::allocate(size_t bytes) {
  const auto size = static_cast<int64_t>(bytes);
  const auto header = static_cast<int64_t>(sizeof(LargeBlock));
  if (size > kSmall) return reinterpret_cast<char*>(take_large(checked_add(size, header))) + header;
  if (text_end_ - text_next_ < size) {
    text_next_ = reinterpret_cast<char*>(take_large(kChunk)) + header;
    text_end_ = text_next_ + kChunk - header;
  }
  char* text = text_next_;
  text_next_ += size;
  return text;
}

}  // namespace plimsoll
