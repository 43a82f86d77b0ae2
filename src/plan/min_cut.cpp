#include "plan/min_cut.h"

#include <algorithm>

namespace plimsoll::plan {

void MinCut::reset(uint32_t vertices) {
  arcs_.clear();
  first_.assign(vertices, kEnd);
}

void MinCut::add_arc(uint32_t from, uint32_t to, int64_t capacity) {
  arcs_.push_back({to, first_[from], capacity});
  first_[from] = static_cast<uint32_t>(arcs_.size() - 1);
  arcs_.push_back({from, first_[to], 0});
  first_[to] = static_cast<uint32_t>(arcs_.size() - 1);
}

bool MinCut::find_levels() {
  level_.assign(first_.size(), -1);
  queue_.assign(1, 0);
  level_[0] = 0;
  for (size_t i = 0; i < queue_.size(); ++i) {
    for (uint32_t a = first_[queue_[i]]; a != kEnd; a = arcs_[a].next) {
      if (arcs_[a].left == 0 || level_[arcs_[a].to] >= 0) continue;
      level_[arcs_[a].to] = level_[queue_[i]] + 1;
      queue_.push_back(arcs_[a].to);
    }
  }
  return level_[1] >= 0;
}

// One more path of the level graph, without recursion: graphs are deep.
int64_t MinCut::push_along_path() {
  path_.clear();
  uint32_t at = 0;
  while (at != 1) {
    uint32_t& a = next_[at];
    while (a != kEnd && (arcs_[a].left == 0 || level_[arcs_[a].to] != level_[at] + 1)) a = arcs_[a].next;
    if (a != kEnd) {
      path_.push_back(a);
      at = arcs_[a].to;
      continue;
    }
    if (path_.empty()) return 0;
    at = arcs_[path_.back() ^ 1].to;
    path_.pop_back();
    next_[at] = arcs_[next_[at]].next;
  }
  int64_t flow = kNever;
  for (const uint32_t a : path_) flow = std::min(flow, arcs_[a].left);
  for (const uint32_t a : path_) {
    arcs_[a].left -= flow;
    arcs_[a ^ 1].left += flow;
  }
  return flow;
}

int64_t MinCut::solve() {
  int64_t sum = 0;
  while (sum < kNever && find_levels()) {
    next_.assign(first_.begin(), first_.end());
    while (const int64_t flow = push_along_path()) {
      sum += flow;
      if (sum >= kNever) break;
    }
  }
  return sum;
}

}  // namespace plimsoll::plan
