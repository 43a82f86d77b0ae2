#include "runtime/dynamic_memory.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"

namespace plimsoll {

size_t DynamicMemory::size_class(int64_t bytes) {
  size_t index = 0;
  for (int64_t size = 64; size < bytes; size *= 2) ++index;
  return index;
}

std::byte* DynamicMemory::allocate_block(int64_t bytes) {
  if (bytes > kSmall) {
    Arena arena(budget_, Account::kDynamic, bytes);
    std::byte* block = arena.data();
    large_.emplace(block, std::move(arena));
    return block;
  }
  const size_t index = size_class(std::max<int64_t>(bytes, 1));
  if (!free_lists_[index].empty()) {
    std::byte* block = free_lists_[index].back();
    small_.emplace(block, index);
    free_lists_[index].pop_back();
    return block;
  }
  const int64_t size = int64_t{64} << index;
  if (end_ - next_ < size) {
    chunks_.reserve(chunks_.size() + 1);
    chunks_.emplace_back(budget_, Account::kDynamic, kChunk);
    next_ = chunks_.back().data();
    end_ = next_ + kChunk;
  }
  small_.emplace(next_, index);
  std::byte* block = next_;
  next_ += size;
  return block;
}

void DynamicMemory::free_block(std::byte* block) noexcept {
  if (large_.erase(block) > 0) return;
  const auto found = small_.find(block);
  if (found == small_.end()) return;
  try {
    free_lists_[found->second].push_back(block);
  } catch (const std::bad_alloc&) {
    // The block stays unused until the end of the run.
  }
  small_.erase(found);
}

TensorView DynamicMemory::allocate_tensor(ElementType type, std::span<const int64_t> dims) {
  TensorView view{nullptr, type, false, dims};
  const int64_t header = round_up(static_cast<int64_t>(dims.size() * sizeof(int64_t)), 64);
  // At least a byte of its own: the address tells whose block it is.
  std::byte* block = allocate_block(checked_add(header, std::max<int64_t>(view.bytes(), 1)));
  auto* own_dims = reinterpret_cast<int64_t*>(block);
  std::copy(dims.begin(), dims.end(), own_dims);
  view.dims = {own_dims, dims.size()};
  view.data = block + header;
  tensors_.emplace(view.data, block);
  return view;
}

void DynamicMemory::free_tensor(TensorView& view) noexcept {
  const auto found = tensors_.find(view.data);
  if (found == tensors_.end()) return;
  std::byte* block = found->second;
  tensors_.erase(found);
  free_block(block);
  view.data = nullptr;
}

char* DynamicMemory::allocate(size_t bytes) {
  return reinterpret_cast<char*>(allocate_block(static_cast<int64_t>(bytes)));
}

}  // namespace plimsoll
