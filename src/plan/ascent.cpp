#include "plan/ascent.h"

#include <algorithm>
#include <array>

namespace plimsoll::plan {

Ascent::Ascent(const std::pmr::vector<Item>& items)
    : items_(items),
      offsets_(items.size(), items.get_allocator()),
      neighbours_(items.get_allocator()),
      neighbours_begin_(items.get_allocator()),
      members_(items.get_allocator()),
      members_begin_(items.get_allocator()),
      is_placed_(items.size(), items.get_allocator()),
      above_(items.size(), items.get_allocator()),
      rest_(items.size(), items.get_allocator()),
      floor_(items.get_allocator()),
      remaining_(items.get_allocator()),
      crossing_(items.get_allocator()),
      waiting_(items.get_allocator()),
      merged_(items.get_allocator()),
      placed_(items.get_allocator()),
      raised_(items.get_allocator()),
      risen_(items.get_allocator()) {
  const int count = static_cast<int>(items.size());
  int sections = 0;
  for (const Item& item : items) sections = std::max(sections, item.last);
  neighbours_begin_.push_back(0);
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < count; ++j) {
      if (i != j && items[i].overlaps(items[j])) neighbours_.push_back(j);
    }
    neighbours_begin_.push_back(static_cast<int>(neighbours_.size()));
  }
  members_begin_.push_back(0);
  for (int s = 0; s < sections; ++s) {
    for (int i = 0; i < count; ++i) {
      if (items[i].first <= s && s < items[i].last) members_.push_back(i);
    }
    members_begin_.push_back(static_cast<int>(members_.size()));
  }
  floor_.resize(sections);
  remaining_.resize(sections);
  crossing_.resize(sections);
}

Outcome Ascent::run(int64_t capacity, Order order, int64_t nodes, Effort& effort) {
  capacity_ = capacity;
  order_ = order;
  nodes_left_ = nodes;
  effort_ = &effort;
  placed_.clear();
  raised_.clear();
  risen_.clear();
  waiting_.clear();
  std::fill(is_placed_.begin(), is_placed_.end(), 0);
  std::fill(remaining_.begin(), remaining_.end(), 0);
  std::fill(crossing_.begin(), crossing_.end(), 0);
  for (int i = 0; i < static_cast<int>(items_.size()); ++i) {
    const Item& item = items_[i];
    rest_[i] = std::max(item.pinned, int64_t{0});
    above_[i] = neighbours_begin_[i + 1] - neighbours_begin_[i];
    for (int s = item.first; s < item.last; ++s) {
      remaining_[s] += item.size;
      crossing_[s] += s + 1 < item.last;
    }
    waiting_.push_back({rest_[i], 0, i});
  }
  for (size_t s = 0; s < floor_.size(); ++s) {
    floor_[s] = kUnlimited;
    for (int at = members_begin_[s]; at < members_begin_[s + 1]; ++at)
      floor_[s] = std::min(floor_[s], rest_[members_[at]]);
  }
  const Sections all{0, static_cast<int>(floor_.size())};
  if (!fits(all, 0)) return Outcome::kImpossible;
  return solve_parts({0, waiting_.size(), all}, 0);
}

bool Ascent::is_spent() {
  constexpr int64_t kNodesBetweenLooks = 256;  // at the clock
  if (--nodes_left_ < 0 || effort_->work <= 0) return true;
  if (nodes_left_ % kNodesBetweenLooks == 0 && effort_->is_spent()) nodes_left_ = 0;
  return false;
}

// `level` and `least_rank` are those of the item placed last: what comes next is not before it.
Outcome Ascent::solve(Group group, int64_t level, int least_rank) {
  if (group.begin == group.end) return Outcome::kFound;
  if (is_spent()) return Outcome::kStopped;
  int64_t lowest_end = kUnlimited;
  for (size_t i = group.begin; i < group.end; ++i)
    lowest_end = std::min(lowest_end, waiting_[i].rest + items_[waiting_[i].item].size);
  size_t i = group.begin;
  for (; i < group.end; ++i) {
    const Waiting& w = waiting_[i];
    if (w.rest > level || (w.rest == level && w.rank >= least_rank)) break;
    if (!can_rise(w, level)) return Outcome::kImpossible;
  }
  for (; i < group.end && waiting_[i].rest < lowest_end; ++i) {
    const Waiting next = waiting_[i];
    const Mark before = mark();
    // Nothing else goes lower: if what remains does not fit above it, it does not above the later ones.
    if (!fits(group.sections, next.rest)) break;
    if (place(next)) {
      const Outcome outcome = place_and_solve(group, next);
      if (outcome != Outcome::kImpossible) return outcome;
    }
    undo(before);
    if (above_[next.item] == 0 || !can_rise(next, next.rest)) break;
  }
  return Outcome::kImpossible;
}

// Passed over, it stays where it is only until a neighbour pushes it up.
bool Ascent::can_rise(const Waiting& passed, int64_t level) const {
  const Item& item = items_[passed.item];
  if (item.pinned != kNotPinned || above_[passed.item] == 0) return false;
  for (int at = neighbours_begin_[passed.item]; at < neighbours_begin_[passed.item + 1]; ++at) {
    const int other = neighbours_[at];
    if (is_placed_[other]) continue;
    if (std::max(rest_[other], level) + items_[other].size + item.size <= capacity_) return true;
  }
  return false;
}

// What its neighbours rest on from now on. False if one of them cannot.
bool Ascent::place(const Waiting& next) {
  const Item& item = items_[next.item];
  const int64_t end = next.rest + item.size;
  effort_->work -= neighbours_begin_[next.item + 1] - neighbours_begin_[next.item] + item.last - item.first;
  is_placed_[next.item] = 1;
  offsets_[next.item] = next.rest;
  placed_.push_back(next.item);
  for (int s = item.first; s < item.last; ++s) remaining_[s] -= item.size;
  for (int s = item.first; s + 1 < item.last; ++s) --crossing_[s];
  const size_t raised_from = raised_.size();
  bool possible = true;
  for (int at = neighbours_begin_[next.item]; at < neighbours_begin_[next.item + 1]; ++at) {
    const int other = neighbours_[at];
    --above_[other];
    if (is_placed_[other] || rest_[other] >= end) continue;
    raised_.push_back({other, rest_[other]});
    rest_[other] = align_up(end, items_[other].alignment);
    if (items_[other].pinned != kNotPinned || rest_[other] + items_[other].size > capacity_) possible = false;
  }
  return possible && update_floors(raised_from, next.rest);
}

// False if in some section what remains does not fit any more.
bool Ascent::update_floors(size_t raised_from, int64_t level) {
  const Item& item = items_[placed_.back()];
  const auto update = [&](int s) {
    int64_t floor = kUnlimited;
    for (int at = members_begin_[s]; at < members_begin_[s + 1]; ++at) {
      const int member = members_[at];
      if (!is_placed_[member]) floor = std::min(floor, rest_[member]);
    }
    if (floor == floor_[s]) return true;
    risen_.push_back({s, floor_[s]});
    floor_[s] = floor;
    return remaining_[s] == 0 || std::max(floor, level) + remaining_[s] <= capacity_;
  };
  for (int s = item.first; s < item.last; ++s) {
    if (!update(s)) return false;
  }
  for (size_t r = raised_from; r < raised_.size(); ++r) {
    const Item& other = items_[raised_[r].item];
    // Only where what was raised was the lowest.
    for (int s = other.first; s < other.last; ++s) {
      const bool is_new = s < item.first || s >= item.last;
      if (is_new && floor_[s] == raised_[r].rest && !update(s)) return false;
    }
  }
  return true;
}

bool Ascent::fits(Sections sections, int64_t level) const {
  int64_t highest = 0;
  for (int s = sections.first; s < sections.last; ++s) {
    const int64_t top = remaining_[s] > 0 ? std::max(level, floor_[s]) + remaining_[s] : 0;
    highest = std::max(highest, top);
  }
  return highest <= capacity_;
}

void Ascent::undo(const Mark& mark) {
  for (; raised_.size() > mark.raised; raised_.pop_back()) rest_[raised_.back().item] = raised_.back().rest;
  for (; risen_.size() > mark.risen; risen_.pop_back()) floor_[risen_.back().section] = risen_.back().floor;
  for (; placed_.size() > mark.placed; placed_.pop_back()) {
    const int i = placed_.back();
    const Item& item = items_[i];
    is_placed_[i] = 0;
    for (int s = item.first; s < item.last; ++s) remaining_[s] += item.size;
    for (int s = item.first; s + 1 < item.last; ++s) ++crossing_[s];
    for (int at = neighbours_begin_[i]; at < neighbours_begin_[i + 1]; ++at) ++above_[neighbours_[at]];
  }
  waiting_.resize(mark.waiting);
}

bool Ascent::is_split(const Item& item) const {
  for (int s = item.first; s + 1 < item.last; ++s) {
    if (crossing_[s] == 0) return true;
  }
  return false;
}

Outcome Ascent::place_and_solve(const Group& group, const Waiting& next) {
  const Group rest = without_placed(group);
  if (is_split(items_[next.item])) return solve_parts(rest, next.rest);
  return solve(rest, next.rest, next.rank);
}

// A copy on top of the stack, in order of the rests of now.
Ascent::Group Ascent::without_placed(const Group& group) {
  const size_t begin = waiting_.size();
  effort_->work -= static_cast<int64_t>(group.end - group.begin);
  merged_.clear();
  for (size_t i = group.begin; i < group.end; ++i) {
    Waiting w = waiting_[i];
    if (is_placed_[w.item]) continue;
    if (rest_[w.item] == w.rest) {
      waiting_.push_back(w);
    } else {
      w.rest = rest_[w.item];
      merged_.push_back(w);
    }
  }
  std::sort(merged_.begin(), merged_.end());
  const auto middle = static_cast<std::ptrdiff_t>(waiting_.size());
  waiting_.insert(waiting_.end(), merged_.begin(), merged_.end());
  std::inplace_merge(waiting_.begin() + static_cast<std::ptrdiff_t>(begin), waiting_.begin() + middle,
                     waiting_.end());
  return {begin, waiting_.size(), group.sections};
}

// The parts of the group between sections that nothing crosses any more, small ones first.
Outcome Ascent::solve_parts(const Group& group, int64_t level) {
  std::vector<Group> parts;
  int first = group.sections.first;
  for (int s = group.sections.first; s < group.sections.last; ++s) {
    if (s + 1 < group.sections.last && crossing_[s] > 0) continue;
    const size_t begin = waiting_.size();
    for (size_t i = group.begin; i < group.end; ++i) {
      const Waiting w = waiting_[i];
      if (items_[w.item].first >= first && items_[w.item].first <= s) waiting_.push_back(w);
    }
    if (waiting_.size() > begin) parts.push_back({begin, waiting_.size(), {first, s + 1}});
    first = s + 1;
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Group& a, const Group& b) { return a.end - a.begin < b.end - b.begin; });
  for (const Group& part : parts) {
    rank(part);
    const Outcome outcome = solve(part, level, 0);
    if (outcome != Outcome::kFound) return outcome;
  }
  return Outcome::kFound;
}

void Ascent::rank(const Group& group) {
  using Key = std::array<double, 3>;
  std::vector<std::pair<Key, int>> keys;
  for (size_t i = group.begin; i < group.end; ++i) {
    const Item& item = items_[waiting_[i].item];
    const auto remaining = remaining_.begin();
    const auto busy = static_cast<double>(*std::max_element(remaining + item.first, remaining + item.last));
    const double lifetime = item.lifetime, area = lifetime * static_cast<double>(item.size);
    Key key{lifetime, area, busy};
    if (order_ == Order::kBusyAreaLifetime) key = {busy, area, lifetime};
    if (order_ == Order::kBusyLifetimeArea) key = {busy, lifetime, area};
    keys.emplace_back(key, waiting_[i].item);
  }
  std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  for (size_t i = 0; i < keys.size(); ++i) {
    const int item = keys[i].second;
    waiting_[group.begin + i] = {rest_[item], static_cast<int>(i), item};
  }
  std::sort(waiting_.begin() + static_cast<std::ptrdiff_t>(group.begin),
            waiting_.begin() + static_cast<std::ptrdiff_t>(group.end));
}

}  // namespace plimsoll::plan
