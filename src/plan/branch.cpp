#include "plan/branch.h"

#include <algorithm>

namespace plimsoll::plan {
namespace {

constexpr size_t kMemory = size_t{1} << 19;  // hashes of failed groups; 4 MiB

uint64_t mix(uint64_t x) {  // a bijection that spreads every bit
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  return x;
}

}  // namespace

Branch::Branch(const std::vector<Item>& items) : items_(items), offsets_(items.size()), failed_(kMemory) {
  int sections = 0;
  for (const Item& item : items) sections = std::max(sections, item.last);
  top_.resize(sections);
}

void Branch::forget() {
  std::fill(failed_.begin(), failed_.end(), 0);
}

Outcome Branch::run(int64_t capacity, const std::vector<double>& rank, int64_t nodes,
                    Clock::time_point deadline) {
  capacity_ = capacity;
  rank_ = &rank;
  nodes_left_ = nodes;
  deadline_ = deadline;
  Group group;
  for (size_t i = 0; i < items_.size(); ++i) {
    group.push_back({static_cast<int>(i), std::max(items_[i].pinned, int64_t{0})});
  }
  return solve(group);
}

bool Branch::out_of_time() {
  if (--nodes_left_ < 0) return true;
  if (nodes_left_ % 64 == 0 && Clock::now() >= deadline_) nodes_left_ = 0;
  return false;
}

Outcome Branch::solve(Group& group) {
  if (group.empty()) return Outcome::kFound;
  if (out_of_time()) return Outcome::kStopped;
  Group by_rest = group;
  std::sort(by_rest.begin(), by_rest.end(), [&](const Waiting& a, const Waiting& b) {
    return a.rest != b.rest ? a.rest < b.rest : (*rank_)[a.item] < (*rank_)[b.item];
  });
  if (!fits(by_rest)) return Outcome::kImpossible;
  const uint64_t key = hash(group);
  uint64_t& memory = failed_[key % kMemory];
  if (memory == key) return Outcome::kImpossible;

  int64_t lowest_end = kUnlimited;
  for (const Waiting& w : group) lowest_end = std::min(lowest_end, w.rest + items_[w.item].size);
  for (size_t i = 0; i < by_rest.size() && by_rest[i].rest < lowest_end; ++i) {
    if (twin_tried(by_rest, i)) continue;
    const Outcome outcome = place_and_solve(group, by_rest[i]);
    if (outcome != Outcome::kImpossible) return outcome;
  }
  memory = key;
  return Outcome::kImpossible;
}

// Items that differ in nothing are placed in the order of by_rest.
bool Branch::twin_tried(const Group& by_rest, size_t i) const {
  const Item& item = items_[by_rest[i].item];
  for (size_t j = i; j-- > 0 && by_rest[j].rest == by_rest[i].rest;) {
    const Item& other = items_[by_rest[j].item];
    if (item.size == other.size && item.first == other.first && item.last == other.last &&
        item.alignment == other.alignment && item.pinned == other.pinned) {
      return true;
    }
  }
  return false;
}

Outcome Branch::place_and_solve(const Group& group, const Waiting& next) {
  const Item& placed = items_[next.item];
  const int64_t end = next.rest + placed.size;
  Group rest_of_group;
  rest_of_group.reserve(group.size());
  for (const Waiting& w : group) {
    if (w.item == next.item) continue;
    const Item& item = items_[w.item];
    int64_t rest = std::max(w.rest, item.overlaps(placed) ? end : next.rest);
    rest = align_up(rest, item.alignment);
    if (item.pinned != kNotPinned && rest > item.pinned) return Outcome::kImpossible;
    if (rest + item.size > capacity_) return Outcome::kImpossible;
    rest_of_group.push_back({w.item, rest});
  }
  offsets_[next.item] = next.rest;
  for (Group& part : split(rest_of_group)) {
    const Outcome outcome = solve(part);
    if (outcome != Outcome::kFound) return outcome;
  }
  return Outcome::kFound;
}

// Groups without a common section; small ones first, since one that fails spares the others.
std::vector<Branch::Group> Branch::split(const Group& group) const {
  std::vector<Group> parts;
  int last = -1;
  for (const Waiting& w : group) {
    const Item& item = items_[w.item];
    if (item.first >= last) parts.emplace_back();
    parts.back().push_back(w);
    last = std::max(last, item.last);
  }
  std::sort(parts.begin(), parts.end(), [](const Group& a, const Group& b) { return a.size() < b.size(); });
  return parts;
}

bool Branch::fits(const Group& by_rest) {
  for (const Waiting& w : by_rest) {
    const Item& item = items_[w.item];
    std::fill(top_.begin() + item.first, top_.begin() + item.last, 0);
  }
  for (const Waiting& w : by_rest) {
    const Item& item = items_[w.item];
    for (int s = item.first; s < item.last; ++s) {
      top_[s] = std::max(top_[s], w.rest) + item.size;
      if (top_[s] > capacity_) return false;
    }
  }
  return true;
}

uint64_t Branch::hash(const Group& group) const {
  uint64_t sum = 0;
  for (const Waiting& w : group) {
    sum += mix(static_cast<uint64_t>(w.rest) * 0x9e3779b97f4a7c15u + mix(w.item + 1));
  }
  return sum;
}

}  // namespace plimsoll::plan
