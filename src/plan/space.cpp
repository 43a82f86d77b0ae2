#include "plan/space.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

namespace plimsoll::plan {
namespace {

// Numbers the sections and sets every item's range. A section closes at the first end after a start.
int cut_sections(const Problem& problem, std::pmr::vector<Item>& items) {
  std::pmr::vector<std::tuple<int64_t, bool, int>> events(
      items.get_allocator());  // (time, is a start, item): ends come first
  events.reserve(items.size() * 2);
  for (int i = 0; i < static_cast<int>(items.size()); ++i) {
    const Buffer& b = problem.buffers[items[i].buffer];
    events.emplace_back(b.lower, true, i);
    events.emplace_back(b.upper, false, i);
  }
  std::sort(events.begin(), events.end());
  int section = 0;
  bool started = false;
  for (const auto& [time, is_start, i] : events) {
    if (is_start) {
      items[i].first = section;
    } else {
      if (started) ++section;
      items[i].last = section;
    }
    started = is_start;
  }
  return section;
}

// Goes through time with the byte ranges of the pins that are alive: as none of them meet, a new one can meet
// its neighbours only.
bool pins_collide(const Space& space) {
  const auto memory = space.items.get_allocator().resource();
  std::pmr::map<int64_t, int64_t> alive(memory);  // begin -> end
  using End = std::pair<int, int64_t>;            // (section, begin)
  std::priority_queue<End, std::pmr::vector<End>, std::greater<>> ends{std::greater<>(),
                                                                       std::pmr::vector<End>(memory)};
  for (const Item& item : space.items) {
    if (item.pinned == kNotPinned) continue;
    for (; !ends.empty() && ends.top().first <= item.first; ends.pop()) alive.erase(ends.top().second);
    const auto above = alive.lower_bound(item.pinned);
    if (above != alive.end() && above->first < item.pinned + item.size) return true;
    if (above != alive.begin() && std::prev(above)->second > item.pinned) return true;
    alive.emplace_hint(above, item.pinned, item.pinned + item.size);
    ends.emplace(item.last, item.pinned);
  }
  return false;
}

void set_bound(Space& space) {
  space.bound = 0;
  for (const Item& item : space.items) {
    if (item.pinned != kNotPinned) space.bound = std::max(space.bound, item.pinned + item.size);
  }
  for (int64_t bytes : space.live) space.bound = std::max(space.bound, bytes);
}

// What is alive in each section: what starts there more, what ended before less.
void add_up_live(Space& space) {
  for (const Item& item : space.items) {
    space.live[item.first] += item.size;
    if (static_cast<size_t>(item.last) < space.live.size()) space.live[item.last] -= item.size;
  }
  for (size_t s = 1; s < space.live.size(); ++s) space.live[s] += space.live[s - 1];
}

}  // namespace

Space make_space(const Problem& problem, int index) {
  Space space(problem.buffers.get_allocator().resource());
  if (!problem.capacity.empty()) space.capacity = problem.capacity[index];
  for (int i = 0; i < static_cast<int>(problem.buffers.size()); ++i) {
    const Buffer& b = problem.buffers[i];
    if (b.space != index || b.size == 0) continue;
    const int64_t pinned = b.offset.value_or(kNotPinned);
    const double lifetime = static_cast<double>(b.upper) - static_cast<double>(b.lower);
    space.items.push_back({b.size, b.alignment, pinned, lifetime, 0, 0, i});
  }
  space.live.resize(cut_sections(problem, space.items));
  std::stable_sort(space.items.begin(), space.items.end(),
                   [](const Item& a, const Item& b) { return a.first < b.first; });
  add_up_live(space);
  set_bound(space);
  space.pins_collide = pins_collide(space);
  return space;
}

std::vector<Space> split_in_time(const Space& space) {
  std::vector<Space> parts;
  int begin = 0, end = 0;  // the sections of the part under way
  for (Item item : space.items) {
    if (item.first >= end) {
      begin = end = item.first;
      parts.emplace_back(space.items.get_allocator().resource()).capacity = space.capacity;
    }
    Space& part = parts.back();
    for (; end < item.last; ++end) part.live.push_back(space.live[end]);
    item.first -= begin;
    item.last -= begin;
    part.items.push_back(item);
  }
  for (Space& part : parts) set_bound(part);
  return parts;
}

int64_t peak_of(const Space& space, const Offsets& offsets) {
  int64_t peak = 0;
  for (size_t i = 0; i < offsets.size(); ++i) peak = std::max(peak, offsets[i] + space.items[i].size);
  return peak;
}

Offsets stacked(const Space& space) {
  Offsets offsets(space.items.get_allocator());
  offsets.reserve(space.items.size());
  int64_t top = 0;
  for (const Item& item : space.items) {
    if (item.pinned != kNotPinned) top = std::max(top, item.pinned + item.size);
  }
  for (const Item& item : space.items) {
    if (item.pinned != kNotPinned) {
      offsets.push_back(item.pinned);
      continue;
    }
    offsets.push_back(align_up(top, item.alignment));
    top = offsets.back() + item.size;
  }
  return offsets;
}

void store(const Space& space, const Offsets& offsets, int index, Placement& placement) {
  for (size_t i = 0; i < offsets.size(); ++i) placement.offsets[space.items[i].buffer] = offsets[i];
  placement.peak[index] = peak_of(space, offsets);
}

Placement blank_placement(const Problem& problem) {
  const Offsets none(problem.buffers.get_allocator().resource());
  Placement placement{Offsets(none, none.get_allocator()), Offsets(none, none.get_allocator())};
  placement.offsets.reserve(problem.buffers.size());
  placement.peak.assign(space_count(problem), 0);
  for (const Buffer& b : problem.buffers) placement.offsets.push_back(b.offset.value_or(0));
  return placement;
}

}  // namespace plimsoll::plan
