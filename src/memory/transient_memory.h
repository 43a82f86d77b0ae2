// Memory for tables that live while something is read, rewritten or planned, and are then given back.
#pragma once

#include <memory_resource>

#include "memory/bump_arena.h"
#include "memory/free_lists.h"

namespace plimsoll {

// Large blocks are mappings of their own, which go back when they are freed; small ones share chunks that go
// back at the end. Every byte is charged before it is mapped. Not thread-safe.
class ChargedResource : public std::pmr::memory_resource {
 public:
  ChargedResource(Budget& budget, Account account)
      : budget_(&budget), chunks_(budget, account), account_(account) {}
  ChargedResource(const ChargedResource&) = delete;

 private:
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* data, size_t bytes, size_t alignment) override;
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  Budget* budget_;
  BumpArena chunks_;
  Account account_;
};

// What one reading, rewriting or planning needs besides its result: an arena, and a resource for containers
// that grow.
class TransientMemory {
 public:
  explicit TransientMemory(Budget& budget, Account account = Account::kSession)
      : arena_(budget, account), mappings_(budget, account), lists_(mappings_) {}

  BumpArena& arena() { return arena_; }
  std::pmr::memory_resource* resource() { return &lists_; }

 private:
  BumpArena arena_;
  ChargedResource mappings_;
  FreeLists lists_;
};

}  // namespace plimsoll
