#include "plan/branch.h"

#include <algorithm>
#include <tuple>

namespace plimsoll::plan {
namespace {

constexpr size_t kMemory = size_t{1} << 16;  // failed groups to remember

uint64_t mix(uint64_t x) {  // a bijection that spreads every bit
  for (int round = 0; round < 2; ++round) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
  }
  return x ^ (x >> 32);
}

uint64_t hash_of(int item, int64_t rest) {
  return mix(mix(static_cast<uint64_t>(item) + 1) + static_cast<uint64_t>(rest));
}

}  // namespace

Branch::Branch(const std::pmr::vector<Item>& items)
    : items_(items), offsets_(items.size()), conflict_(items.size()), failed_(kMemory) {
  int sections = 0;
  for (const Item& item : items) sections = std::max(sections, item.last);
  top_.resize(sections);
  reach_.resize(sections);
}

void Branch::forget() {
  for (Failure& failure : failed_) failure.key = 0;
}

Outcome Branch::run(int64_t capacity, const std::vector<int>& rank, int64_t nodes,
                    Clock::time_point deadline) {
  capacity_ = capacity;
  nodes_left_ = nodes;
  deadline_ = deadline;
  Group group;
  for (int i = 0; i < static_cast<int>(items_.size()); ++i) {
    const int64_t rest = std::max(items_[i].pinned, int64_t{0});
    group.push_back({rest, rank[i], i, hash_of(i, rest)});
  }
  std::sort(group.begin(), group.end(), [](const Waiting& a, const Waiting& b) {
    return std::tie(a.rest, a.rank) < std::tie(b.rest, b.rank);
  });
  return solve(group, {0, static_cast<int>(top_.size())});
}

bool Branch::out_of_time() {
  if (--nodes_left_ < 0) return true;
  if (nodes_left_ % 64 == 0 && Clock::now() >= deadline_) nodes_left_ = 0;
  return false;
}

// `changed`: the sections in which some rest is higher than when fits() was last asked.
Outcome Branch::solve(const Group& group, Range changed) {
  if (group.empty()) return Outcome::kFound;
  if (out_of_time()) return Outcome::kStopped;
  uint64_t key = 0;
  int64_t lowest_end = kUnlimited;
  int lowest = 0;
  for (const Waiting& w : group) {
    key += w.hash;
    const int64_t end = w.rest + items_[w.item].size;
    if (end >= lowest_end) continue;
    lowest_end = end;
    lowest = w.item;
  }
  Failure& failure = failed_[key % kMemory];
  if (failure.key == key) {
    conflict_ = failure.conflict;
    return Outcome::kImpossible;
  }
  if (!fits(group, changed)) return Outcome::kImpossible;

  ItemSet conflict(items_.size()), tried(items_.size());
  conflict.insert(lowest);
  conflict.insert(group[0].item);
  for (size_t i = 0; i < group.size() && group[i].rest < lowest_end;) {
    const int item = group[i].item;
    if (tried.contains(item) || !conflict.contains(item) || twin_tried(group, i, tried)) {
      ++i;
      continue;
    }
    const Outcome outcome = place_and_solve(group, group[i]);
    if (outcome != Outcome::kImpossible) return outcome;
    if (!conflict_.contains(item)) {
      conflict = conflict_;
      break;
    }
    tried.insert(item);
    conflict.insert_all(conflict_);
    i = 0;
  }
  failure = {key, conflict};
  conflict_ = conflict;
  return Outcome::kImpossible;
}

// Items that differ in nothing are interchangeable.
bool Branch::twin_tried(const Group& group, size_t i, const ItemSet& tried) const {
  const Item& item = items_[group[i].item];
  for (size_t j = i; j-- > 0 && group[j].rest == group[i].rest;) {
    const Item& other = items_[group[j].item];
    if (tried.contains(group[j].item) && item.size == other.size && item.first == other.first &&
        item.last == other.last && item.alignment == other.alignment && item.pinned == other.pinned) {
      return true;
    }
  }
  return false;
}

Outcome Branch::place_and_solve(const Group& group, const Waiting& next) {
  Group remaining, raised;
  if (!raise(group, next, remaining, raised)) return Outcome::kImpossible;
  Range changed{items_[next.item].first, items_[next.item].last};
  for (const Waiting& w : raised) {
    changed.first = std::min(changed.first, items_[w.item].first);
    changed.last = std::max(changed.last, items_[w.item].last);
  }
  offsets_[next.item] = next.rest;
  for (const Group& part : split(std::move(remaining))) {
    const Outcome outcome = solve(part, changed);
    if (outcome == Outcome::kFound) continue;
    if (outcome == Outcome::kImpossible) {
      for (const Waiting& w : raised) {
        if (conflict_.contains(w.item)) {
          conflict_.insert(next.item);
          break;
        }
      }
    }
    return outcome;
  }
  return Outcome::kFound;
}

// The group without `next`, resting on it or, elsewhere in time, not below it. False if one cannot.
bool Branch::raise(const Group& group, const Waiting& next, Group& remaining, Group& raised) {
  const Item& placed = items_[next.item];
  remaining.reserve(group.size());
  for (const Waiting& w : group) {
    if (w.item == next.item) continue;
    const Item& item = items_[w.item];
    const int64_t floor = item.overlaps(placed) ? next.rest + placed.size : next.rest;
    if (floor <= w.rest) {
      remaining.push_back(w);
      continue;
    }
    const int64_t rest = align_up(floor, item.alignment);
    if (item.pinned != kNotPinned || rest + item.size > capacity_) {
      conflict_.clear_all();
      conflict_.insert(w.item);
      conflict_.insert(next.item);
      return false;
    }
    raised.push_back({rest, w.rank, w.item, hash_of(w.item, rest)});
  }
  const auto less = [](const Waiting& a, const Waiting& b) {
    return std::tie(a.rest, a.rank) < std::tie(b.rest, b.rank);
  };
  std::sort(raised.begin(), raised.end(), less);
  const auto middle = remaining.insert(remaining.end(), raised.begin(), raised.end());
  std::inplace_merge(remaining.begin(), middle, remaining.end(), less);
  return true;
}

// Groups without a common section; small ones first, since one that fails spares the others.
std::vector<Branch::Group> Branch::split(Group&& group) {
  std::fill(reach_.begin(), reach_.end(), 0);
  for (const Waiting& w : group) {
    const Item& item = items_[w.item];
    reach_[item.first] = std::max(reach_[item.first], item.last);
  }
  int parts = 0, end = 0;  // turns reach_ into the number of the part that a section belongs to
  for (int s = 0; s < static_cast<int>(reach_.size()); ++s) {
    if (reach_[s] > 0 && s >= end) ++parts;
    end = std::max(end, reach_[s]);
    reach_[s] = parts - 1;
  }
  std::vector<Group> groups(parts);
  if (parts == 1) {
    groups[0] = std::move(group);
    return groups;
  }
  for (const Waiting& w : group) groups[reach_[items_[w.item].first]].push_back(w);
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.size() < b.size(); });
  return groups;
}

bool Branch::fits(const Group& group, Range changed) {
  std::fill(top_.begin() + changed.first, top_.begin() + changed.last, 0);
  for (const Waiting& w : group) {
    const Item& item = items_[w.item];
    const int last = std::min(item.last, changed.last);
    for (int s = std::max(item.first, changed.first); s < last; ++s) {
      top_[s] = std::max(top_[s], w.rest) + item.size;
      if (top_[s] > capacity_) {
        blame(group, s);
        return false;
      }
    }
  }
  return true;
}

// The conflict: the items of this section that stack without a gap up to the capacity and beyond.
void Branch::blame(const Group& group, int section) {
  int64_t top = -1;
  for (const Waiting& w : group) {
    const Item& item = items_[w.item];
    if (section < item.first || section >= item.last) continue;
    if (w.rest > top) {
      conflict_.clear_all();
      top = w.rest;
    }
    conflict_.insert(w.item);
    top += item.size;
    if (top > capacity_) return;
  }
}

}  // namespace plimsoll::plan
