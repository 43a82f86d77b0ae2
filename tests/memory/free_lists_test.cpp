#include "memory/free_lists.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <new>
#include <vector>

namespace plimsoll {
namespace {

// Counts what it gave, and fails when it is told to.
class Counted : public std::pmr::memory_resource {
 public:
  ~Counted() override {
    for (auto& [data, block] : blocks_)
      std::pmr::new_delete_resource()->deallocate(data, block.first, block.second);
  }
  int calls = 0;
  int fails_at = 0;
  size_t held() const { return blocks_.size(); }

 private:
  void* do_allocate(size_t bytes, size_t alignment) override {
    if (++calls == fails_at) throw std::bad_alloc();
    void* data = std::pmr::new_delete_resource()->allocate(bytes, alignment);
    blocks_[data] = {bytes, alignment};
    return data;
  }
  void do_deallocate(void* data, size_t bytes, size_t alignment) override {
    EXPECT_EQ(blocks_.at(data), std::pair(bytes, alignment));
    blocks_.erase(data);
    std::pmr::new_delete_resource()->deallocate(data, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::map<void*, std::pair<size_t, size_t>> blocks_;
};

TEST(FreeLists, WhatWasGivenBackIsTakenAgain) {
  Counted upstream;
  FreeLists lists(upstream);
  void* first = lists.allocate(100, 8);
  void* second = lists.allocate(100, 8);
  EXPECT_NE(first, second);
  lists.deallocate(first, 100, 8);
  EXPECT_EQ(lists.allocate(65, 64), first);  // of the same power of two
  EXPECT_EQ(upstream.calls, 2);
  void* aligned = lists.allocate(1, 64);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned) % 64, 0u);
}

TEST(FreeLists, LargeBlocksGoBackAtOnce) {
  Counted upstream;
  FreeLists lists(upstream);
  lists.deallocate(lists.allocate((16 << 10) + 1, 8), (16 << 10) + 1, 8);
  lists.deallocate(lists.allocate(256, 128), 256, 128);
  EXPECT_EQ(upstream.held(), 0u);
}

// Every call of the upstream fails in turn, under containers that grow.
TEST(FreeLists, AnUpstreamThatFailsHarmsNothing) {
  for (int n = 1;; ++n) {
    Counted upstream;
    upstream.fails_at = n;
    FreeLists lists(upstream);
    const auto fill = [&] {
      std::pmr::map<int, std::pmr::vector<int>> table(&lists);
      for (int i = 0; i < 300; ++i) table[i % 17].push_back(i);
      return table.at(3).back();
    };
    bool failed = false;
    try {
      fill();
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    EXPECT_EQ(fill(), 292);
    if (!failed) break;
  }
}

}  // namespace
}  // namespace plimsoll
