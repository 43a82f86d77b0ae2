// The items of a space that are placed, found by lifetime.
#pragma once

#include <algorithm>
#include <vector>

#include "plan/space.h"

namespace plimsoll::plan {

// A segment tree over the items in order of `first`, holding the greatest `last` of those inserted: a query
// walks only into subtrees that hold an overlapping item.
class IntervalIndex {
 public:
  explicit IntervalIndex(const std::vector<Item>& items) : items_(items) {
    while (leaves_ < items.size()) leaves_ *= 2;
    greatest_last_.assign(2 * leaves_, kNothing);
  }

  void clear() { std::fill(greatest_last_.begin(), greatest_last_.end(), kNothing); }

  void insert(int i) {
    const int last = items_[i].last;
    for (size_t node = leaves_ + i; node > 0 && greatest_last_[node] < last; node /= 2) {
      greatest_last_[node] = last;
    }
  }

  // Calls visit(i) for every inserted item alive together with `item`.
  template <typename Visit>
  void for_each_overlapping(const Item& item, Visit&& visit) const {
    const auto by_first = [](const Item& a, int section) { return a.first < section; };
    const auto end = std::lower_bound(items_.begin(), items_.end(), item.last, by_first);
    walk(1, 0, leaves_, static_cast<size_t>(end - items_.begin()), item.first, visit);
  }

 private:
  static constexpr int kNothing = -1;

  template <typename Visit>
  void walk(size_t node, size_t begin, size_t width, size_t end, int first, Visit& visit) const {
    if (begin >= end || greatest_last_[node] <= first) return;
    if (width == 1) {
      visit(static_cast<int>(begin));
      return;
    }
    walk(2 * node, begin, width / 2, end, first, visit);
    walk(2 * node + 1, begin + width / 2, width / 2, end, first, visit);
  }

  const std::vector<Item>& items_;
  size_t leaves_ = 1;
  std::vector<int> greatest_last_;
};

}  // namespace plimsoll::plan
