#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "plan/gaps.h"
#include "plan/placement.h"
#include "plan/space.h"
#include "plan/sweep.h"

namespace plimsoll::plan {
namespace {

using Key = std::function<double(int item)>;
using Order = std::pmr::vector<int>;  // items, those to place first in front

// Once there is a result, the race ends after so much work (see Gaps): a few milliseconds.
constexpr int64_t kMostWork = 600'000;

class Race {
 public:
  Race(const Space& space, int64_t limit)
      : space_(space), gaps_(space.items), limit_(limit), best_(space.items.get_allocator()) {
    // In every order each of so many would be held against all others.
    constexpr size_t kMany = 5000;
    is_large_ = gaps_.is_dense() && space.items.size() > kMany;
    if (is_large_) offer(swept(space));
  }

  // Places in this order; keeps the result if it beats all before.
  void run(const Order& order, Fit fit) {
    gaps_.clear();
    for (int i : order) {
      if (is_large_ && finished()) return;
      const Item& item = space_.items[i];
      const int64_t offset = item.pinned != kNotPinned ? item.pinned : gaps_.find(i, fit);
      if (offset + item.size > limit_) return;
      gaps_.place(i, offset);
    }
    offer(gaps_.offsets());
  }

  bool finished() const { return limit_ < space_.bound || (!best_.empty() && gaps_.work() > kMostWork); }
  int conflicts(int item) const { return gaps_.conflicts(item); }
  Offsets take_best() { return std::move(best_); }

 private:
  void offer(const Offsets& offsets) {
    if (offsets.empty() || peak_of(space_, offsets) > limit_) return;
    best_ = offsets;
    limit_ = peak_of(space_, best_) - 1;
  }

  const Space& space_;
  Gaps gaps_;
  int64_t limit_;
  Offsets best_;
  bool is_large_ = false;
};

// By falling key, equal keys by falling size, pinned items before all others.
Order order_by(const Space& space, const Key& key) {
  const size_t count = space.items.size();
  std::pmr::vector<double> keys(count, space.items.get_allocator());
  for (size_t i = 0; i < count; ++i) keys[i] = key(static_cast<int>(i));
  Order order(count, space.items.get_allocator());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const Item &x = space.items[a], &y = space.items[b];
    if ((x.pinned == kNotPinned) != (y.pinned == kNotPinned)) return x.pinned != kNotPinned;
    return keys[a] != keys[b] ? keys[a] > keys[b] : x.size > y.size;
  });
  return order;
}

}  // namespace

Offsets greedy_race(const Space& space, int64_t limit) {
  const auto& items = space.items;
  Offsets stack = stacked(space);
  const bool all_pinned =
      std::all_of(items.begin(), items.end(), [](const Item& item) { return item.pinned != kNotPinned; });
  if (all_pinned && peak_of(space, stack) <= limit) return stack;
  Race race(space, std::min(limit, peak_of(space, stack)));
  const auto size = [&](int i) { return static_cast<double>(items[i].size); };
  const auto lifetime = [&](int i) { return items[i].lifetime; };
  const auto busy = [&](int i) {
    const auto live = space.live.begin();
    return static_cast<double>(*std::max_element(live + items[i].first, live + items[i].last));
  };
  // Most often best first. The last is place_naive's, which keeps its limit for certain.
  const Key keys[] = {
      [&](int i) { return size(i) * lifetime(i); },
      size,
      lifetime,
      [&](int i) { return size(i) * race.conflicts(i); },
      [&](int i) { return -static_cast<double>(items[i].first); },
      [&](int i) { return static_cast<double>(items[i].last); },
      busy,
      [&](int i) { return busy(i) * size(i) * lifetime(i); },
      [&](int i) { return -static_cast<double>(i); },
  };
  for (const auto& key : keys) {
    const Order order = order_by(space, key);
    for (Fit fit : {Fit::kFirst, Fit::kBest}) {
      if (!race.finished()) race.run(order, fit);
    }
    if (race.finished()) break;
  }
  return race.take_best();
}

std::optional<Placement> place_greedy(const Problem& problem) {
  validate(problem);
  Placement placement = blank_placement(problem);
  for (int s = 0; s < space_count(problem); ++s) {
    const Space space = make_space(problem, s);
    if (space.pins_collide || space.bound > space.capacity) return std::nullopt;
    if (space.items.empty()) continue;
    const Offsets offsets = greedy_race(space, space.capacity);
    if (offsets.empty()) return std::nullopt;
    store(space, offsets, s, placement);
  }
  return placement;
}

}  // namespace plimsoll::plan
