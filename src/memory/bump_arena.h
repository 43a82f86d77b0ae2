// Memory for many small things that live and die together: graphs, plans, caches.
#pragma once

#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "memory/mapping.h"

namespace plimsoll {

// Hands out pieces of mapped chunks and frees them all at once when it is destroyed; only what is large can
// be given back before. Not thread-safe.
// Objects made here must not need destruction. Every chunk is charged before it is mapped.
class BumpArena {
 public:
  explicit BumpArena(Budget& budget, Account account = Account::kSession)
      : budget_(&budget), account_(account) {}

  void* allocate(size_t size, size_t alignment = alignof(std::max_align_t));

  template <typename T, typename... Args>
  T* make(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T>);
    return ::new (allocate(sizeof(T), alignof(T))) T(std::forward<Args>(args)...);
  }
  // `count` value-initialized elements.
  template <typename T>
  std::span<T> array(size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    if (count == 0) return {};
    T* data = static_cast<T*>(allocate(sizeof(T) * count, alignof(T)));
    for (size_t i = 0; i < count; ++i) ::new (data + i) T();
    return {data, count};
  }
  template <typename T>
  std::span<T> copy(std::span<const T> source) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::span<T> result = array<T>(source.size());
    if (!source.empty()) std::memcpy(static_cast<void*>(result.data()), source.data(), source.size_bytes());
    return result;
  }
  template <typename T>
  std::span<T> copy(const std::vector<T>& source) {
    return copy(std::span<const T>(source));
  }
  std::string_view copy(std::string_view text) {
    const std::span<char> result = copy(std::span<const char>(text.data(), text.size()));
    return {result.data(), result.size()};
  }

  // Whether allocate() gives so many bytes a mapping of their own, which release() can give back.
  static bool is_large(size_t size) { return size >= kLarge; }
  // Gives back what allocate() returned for a large size; nobody may look at it any more.
  void release(const void* large) noexcept;
  // What release() of it would give back: 0 if it is not large, or of another arena.
  int64_t bytes_to_release(const void* large) const noexcept;

  // What was handed out, each mapping by itself.
  std::vector<std::span<const std::byte>> pieces() const;
  // Maps `size` bytes in one piece for bytes that were pieces() of another arena, and room behind them for
  // what allocate() hands out next. Of a new arena only.
  std::span<std::byte> adopt(size_t size, size_t room);

  int64_t mapped_bytes() const { return mapped_; }
  Budget& budget() const { return *budget_; }

 private:
  static constexpr size_t kLarge = 256 << 10;
  struct Chunk {
    Arena memory;
    std::byte* end = nullptr;  // of what was handed out, once another chunk has taken its place
  };
  std::byte* add_chunk(int64_t size);

  Budget* budget_;
  Account account_;
  std::vector<Chunk> chunks_;
  std::vector<Arena> large_;  // one thing each
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
  int64_t mapped_ = 0;
};

// A growing array inside a BumpArena. Growth leaves the old storage behind in the arena.
template <typename T>
class ArenaVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit ArenaVector(BumpArena& arena) : arena_(&arena) {}
  void push_back(const T& value) {
    if (size_ == storage_.size()) {
      std::span<T> larger = arena_->array<T>(size_ == 0 ? 8 : size_ * 2);
      if (size_ > 0) std::memcpy(static_cast<void*>(larger.data()), storage_.data(), size_ * sizeof(T));
      storage_ = larger;
    }
    storage_[size_++] = value;
  }
  void clear() { size_ = 0; }
  void resize_down(size_t size) { size_ = size; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return storage_[i]; }
  const T& operator[](size_t i) const { return storage_[i]; }
  T* begin() { return storage_.data(); }
  T* end() { return storage_.data() + size_; }
  const T* begin() const { return storage_.data(); }
  const T* end() const { return storage_.data() + size_; }
  T& back() { return storage_[size_ - 1]; }
  std::span<T> span() { return storage_.first(size_); }
  std::span<const T> span() const { return storage_.first(size_); }

 private:
  BumpArena* arena_;
  std::span<T> storage_;
  size_t size_ = 0;
};

}  // namespace plimsoll
