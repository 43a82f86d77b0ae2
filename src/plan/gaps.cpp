#include "plan/gaps.h"

#include <algorithm>

namespace plimsoll::plan {
namespace {

constexpr int64_t kNotPlaced = -1;
constexpr int64_t kQuestion = 10;  // the work of a question itself
constexpr int64_t kDense =
    100;  // mean conflicts from which on a scan is faster (measured with 3,000 buffers)

// All items but those that end before it or start after it.
std::pmr::vector<int> count_conflicts(const std::pmr::vector<Item>& items) {
  const auto memory = items.get_allocator().resource();
  std::pmr::vector<int> firsts(memory), lasts(memory), counts(memory);
  for (auto* list : {&firsts, &lasts, &counts}) list->reserve(items.size());
  for (const Item& item : items) {
    firsts.push_back(item.first);
    lasts.push_back(item.last);
  }
  std::sort(lasts.begin(), lasts.end());
  for (const Item& item : items) {
    const auto started = std::lower_bound(firsts.begin(), firsts.end(), item.last) - firsts.begin();
    const auto ended = std::upper_bound(lasts.begin(), lasts.end(), item.first) - lasts.begin();
    counts.push_back(static_cast<int>(started - ended) - 1);
  }
  return counts;
}

}  // namespace

Gaps::Gaps(const std::pmr::vector<Item>& items)
    : items_(items),
      conflicts_(count_conflicts(items)),
      list_(items.get_allocator()),
      list_begin_(items.get_allocator()),
      offsets_(items.get_allocator()),
      taken_(items.get_allocator()) {
  int64_t total = 0;
  for (int count : conflicts_) total += count;
  dense_ = total > kDense * static_cast<int64_t>(items.size());
  if (!dense_) list_conflicts();
  clear();
}

void Gaps::list_conflicts() {
  list_begin_.assign(1, 0);
  for (int count : conflicts_) list_begin_.push_back(list_begin_.back() + count);
  list_.resize(list_begin_.back());
  std::pmr::vector<int> next(list_begin_.begin(), list_begin_.end() - 1, items_.get_allocator());
  const int count = static_cast<int>(items_.size());
  for (int i = 0; i < count; ++i) {
    for (int j = i + 1; j < count && items_[j].first < items_[i].last; ++j) {
      list_[next[i]++] = j;
      list_[next[j]++] = i;
    }
  }
}

void Gaps::clear() {
  offsets_.assign(items_.size(), kNotPlaced);
  taken_.clear();
}

void Gaps::place(int i, int64_t offset) {
  offsets_[i] = offset;
  if (!dense_) return;
  const Item& item = items_[i];
  const Taken taken{offset, offset + item.size, item.first, item.last};
  const auto by_begin = [](const Taken& a, const Taken& b) { return a.begin < b.begin; };
  taken_.insert(std::upper_bound(taken_.begin(), taken_.end(), taken, by_begin), taken);
}

int64_t Gaps::find(int i, Fit fit) {
  if (!dense_) {
    taken_.clear();
    for (int at = list_begin_[i]; at < list_begin_[i + 1]; ++at) {
      const int other = list_[at];
      if (offsets_[other] == kNotPlaced) continue;
      taken_.push_back({offsets_[other], offsets_[other] + items_[other].size, 0, items_[i].last});
    }
    std::sort(taken_.begin(), taken_.end(), [](const Taken& a, const Taken& b) { return a.begin < b.begin; });
  }
  work_ += kQuestion + static_cast<int64_t>(taken_.size());
  return first_or_best(items_[i], fit);
}

int64_t Gaps::first_or_best(const Item& item, Fit fit) {
  int64_t top = 0, best = kNotPlaced, best_gap = kUnlimited;
  for (const Taken& taken : taken_) {
    if (taken.first >= item.last || taken.last <= item.first) continue;
    if (taken.begin - top >= item.size && taken.begin - top < best_gap) {
      const int64_t offset = align_up(top, item.alignment);
      if (offset + item.size <= taken.begin) {
        if (fit == Fit::kFirst) return offset;
        best_gap = taken.begin - top;
        best = offset;
      }
    }
    top = std::max(top, taken.end);
  }
  return best != kNotPlaced ? best : align_up(top, item.alignment);
}

}  // namespace plimsoll::plan
