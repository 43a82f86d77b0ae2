#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "plan/interval_index.h"
#include "plan/placement.h"
#include "plan/space.h"

namespace plimsoll::plan {
namespace {

enum class Fit { kFirst, kBest };  // the lowest gap that is large enough, or the smallest one

using Order = std::vector<int>;  // items, those to place first in front

class Race {
 public:
  Race(const Space& space, int64_t limit) : space_(space), placed_(space.items), limit_(limit) {}

  // Places in this order; keeps the result if it beats all before.
  void run(const Order& order, Fit fit) {
    placed_.clear();
    offsets_.assign(space_.items.size(), 0);
    for (int i : order) {
      const Item& item = space_.items[i];
      const int64_t offset = item.pinned != kNotPinned ? item.pinned : find_gap(item, fit);
      if (offset + item.size > limit_) return;
      offsets_[i] = offset;
      placed_.insert(i);
    }
    limit_ = peak_of(space_, offsets_) - 1;
    best_ = offsets_;
  }

  bool finished() const { return limit_ < space_.bound; }
  std::vector<int64_t> take_best() { return std::move(best_); }

 private:
  int64_t find_gap(const Item& item, Fit fit) {
    taken_.clear();
    placed_.for_each_overlapping(
        item, [&](int i) { taken_.emplace_back(offsets_[i], offsets_[i] + space_.items[i].size); });
    std::sort(taken_.begin(), taken_.end());
    int64_t top = 0, best_offset = -1, best_gap = kUnlimited;
    for (const auto& [begin, end] : taken_) {
      const int64_t offset = align_up(top, item.alignment);
      if (offset + item.size <= begin) {
        if (fit == Fit::kFirst) return offset;
        if (begin - top < best_gap) {
          best_gap = begin - top;
          best_offset = offset;
        }
      }
      top = std::max(top, end);
    }
    return best_offset >= 0 ? best_offset : align_up(top, item.alignment);
  }

  const Space& space_;
  IntervalIndex placed_;
  int64_t limit_;
  std::vector<int64_t> offsets_, best_;
  std::vector<std::pair<int64_t, int64_t>> taken_;
};

// By falling key, equal keys by falling size, pinned items before all others.
Order order_by(const Space& space, const std::function<double(const Item&)>& key) {
  const size_t count = space.items.size();
  std::vector<double> keys(count);
  for (size_t i = 0; i < count; ++i) keys[i] = key(space.items[i]);
  Order order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const Item &x = space.items[a], &y = space.items[b];
    if ((x.pinned == kNotPinned) != (y.pinned == kNotPinned)) return x.pinned != kNotPinned;
    return keys[a] != keys[b] ? keys[a] > keys[b] : x.size > y.size;
  });
  return order;
}

// How many items are alive together with each: all but those that end before it or start after it.
class Conflicts {
 public:
  explicit Conflicts(const Space& space) {
    for (const Item& item : space.items) {
      firsts_.push_back(item.first);
      lasts_.push_back(item.last);
    }
    std::sort(lasts_.begin(), lasts_.end());
  }
  double of(const Item& item) const {
    const auto started = std::lower_bound(firsts_.begin(), firsts_.end(), item.last) - firsts_.begin();
    const auto ended = std::upper_bound(lasts_.begin(), lasts_.end(), item.first) - lasts_.begin();
    return static_cast<double>(started - ended);
  }

 private:
  std::vector<int> firsts_, lasts_;
};

}  // namespace

std::vector<int64_t> greedy_race(const Space& space, int64_t limit) {
  Race race(space, limit);
  const Conflicts conflicts(space);
  const auto size = [](const Item& x) { return static_cast<double>(x.size); };
  const auto lifetime = [](const Item& x) { return x.lifetime; };
  const auto pressure = [&](const Item& x) {
    return static_cast<double>(*std::max_element(space.live.begin() + x.first, space.live.begin() + x.last));
  };
  // Most often best first. The problem's own order makes sure that place_naive never wins.
  const std::function<double(const Item&)> keys[] = {
      size,
      [&](const Item& x) { return size(x) * lifetime(x); },
      [&](const Item& x) { return size(x) * conflicts.of(x); },
      lifetime,
      [](const Item& x) { return -static_cast<double>(x.first); },
      [](const Item& x) { return static_cast<double>(x.last); },
      pressure,
      [&](const Item& x) { return pressure(x) * size(x) * lifetime(x); },
      [](const Item& x) { return -static_cast<double>(x.buffer); },
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
    const std::vector<int64_t> offsets = greedy_race(space, space.capacity);
    if (offsets.empty()) return std::nullopt;
    store(space, offsets, s, placement);
  }
  return placement;
}

}  // namespace plimsoll::plan
