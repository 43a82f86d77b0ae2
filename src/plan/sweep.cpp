#include "plan/sweep.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <utility>

namespace plimsoll::plan {
namespace {

// Free ranges below the top, never adjacent to each other.
class FreeRanges {
 public:
  explicit FreeRanges(std::pmr::memory_resource* memory) : by_offset_(memory), by_size_(memory) {}

  int64_t take(const Item& item) {
    // The smallest that is large enough may still be in the wrong place for the alignment; then the next.
    constexpr int kTries = 4;
    auto at = by_size_.lower_bound({item.size, 0});
    for (int i = 0; i < kTries && at != by_size_.end(); ++i, ++at) {
      const auto [size, begin] = *at;
      const int64_t offset = align_up(begin, item.alignment);
      if (offset + item.size > begin + size) continue;
      remove(begin, size);
      add(begin, offset);
      add(offset + item.size, begin + size);
      return offset;
    }
    return extend(item);
  }

  void free(int64_t begin, int64_t end) {
    const auto above = by_offset_.lower_bound(begin);
    if (above != by_offset_.end() && above->first == end) {
      end += above->second;
      remove(above->first, above->second);
    }
    auto below = by_offset_.lower_bound(begin);
    if (below != by_offset_.begin()) {
      --below;
      if (below->first + below->second == begin) {
        begin = below->first;
        remove(below->first, below->second);
      }
    }
    add(begin, end);
  }

 private:
  // On top of all, from the last free range if that reaches there.
  int64_t extend(const Item& item) {
    int64_t from = top_;
    if (!by_offset_.empty()) {
      const auto [begin, size] = *by_offset_.rbegin();
      if (begin + size == top_) {
        from = begin;
        remove(begin, size);
      }
    }
    const int64_t offset = align_up(from, item.alignment);
    add(from, offset);
    top_ = std::max(top_, offset + item.size);
    return offset;
  }
  void add(int64_t begin, int64_t end) {
    if (begin >= end) return;
    by_offset_.emplace(begin, end - begin);
    by_size_.emplace(end - begin, begin);
  }
  void remove(int64_t begin, int64_t size) {
    by_offset_.erase(begin);
    by_size_.erase({size, begin});
  }

  std::pmr::map<int64_t, int64_t> by_offset_;           // begin -> size
  std::pmr::set<std::pair<int64_t, int64_t>> by_size_;  // (size, begin)
  int64_t top_ = 0;
};

}  // namespace

Offsets swept(const Space& space) {
  const auto memory = space.items.get_allocator().resource();
  Offsets offsets(memory);
  const bool is_pinned = std::any_of(space.items.begin(), space.items.end(),
                                     [](const Item& item) { return item.pinned != kNotPinned; });
  if (is_pinned) return offsets;
  offsets.resize(space.items.size());
  FreeRanges ranges(memory);
  using End = std::pair<int, int>;  // (section, item)
  std::priority_queue<End, std::pmr::vector<End>, std::greater<>> alive{std::greater<>(),
                                                                        std::pmr::vector<End>(memory)};
  for (int i = 0; i < static_cast<int>(space.items.size()); ++i) {
    const Item& item = space.items[i];
    for (; !alive.empty() && alive.top().first <= item.first; alive.pop()) {
      const int ended = alive.top().second;
      ranges.free(offsets[ended], offsets[ended] + space.items[ended].size);
    }
    offsets[i] = ranges.take(item);
    alive.emplace(item.last, i);
  }
  return offsets;
}

}  // namespace plimsoll::plan
