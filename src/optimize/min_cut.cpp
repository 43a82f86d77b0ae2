#include "optimize/min_cut.h"

#include <algorithm>

namespace plimsoll {

int MinCut::add_vertex() {
  leaving_.emplace_back();
  return static_cast<int>(leaving_.size()) - 1;
}

void MinCut::add_arc(int from, int to, int64_t capacity) {
  leaving_[static_cast<size_t>(from)].push_back(static_cast<int>(arcs_.size()));
  arcs_.push_back({to, capacity});
  leaving_[static_cast<size_t>(to)].push_back(static_cast<int>(arcs_.size()));
  arcs_.push_back({from, 0});
}

bool MinCut::find_levels() {
  level_.assign(leaving_.size(), -1);
  level_[kSource] = 0;
  std::vector<int> queue = {kSource};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (int index : leaving_[static_cast<size_t>(queue[i])]) {
      const Arc& arc = arcs_[static_cast<size_t>(index)];
      int& level = level_[static_cast<size_t>(arc.to)];
      if (arc.left == 0 || level >= 0) continue;
      level = level_[static_cast<size_t>(queue[i])] + 1;
      queue.push_back(arc.to);
    }
  }
  return level_[kSink] >= 0;
}

// One augmenting path along rising levels, found without recursion: graphs are deep.
int64_t MinCut::push(int64_t limit) {
  std::vector<int> path;
  int at = kSource;
  while (at != kSink) {
    size_t& i = next_[static_cast<size_t>(at)];
    const std::vector<int>& leaving = leaving_[static_cast<size_t>(at)];
    while (i < leaving.size()) {
      const Arc& arc = arcs_[static_cast<size_t>(leaving[i])];
      if (arc.left > 0 && level_[static_cast<size_t>(arc.to)] == level_[static_cast<size_t>(at)] + 1) break;
      ++i;
    }
    if (i < leaving.size()) {
      path.push_back(leaving[i]);
      at = arcs_[static_cast<size_t>(leaving[i])].to;
    } else {
      if (path.empty()) return 0;
      at = arcs_[static_cast<size_t>(path.back() ^ 1)].to;
      path.pop_back();
      ++next_[static_cast<size_t>(at)];
    }
  }
  int64_t flow = limit;
  for (int index : path) flow = std::min(flow, arcs_[static_cast<size_t>(index)].left);
  for (int index : path) {
    arcs_[static_cast<size_t>(index)].left -= flow;
    arcs_[static_cast<size_t>(index ^ 1)].left += flow;
  }
  return flow;
}

std::vector<bool> MinCut::source_side() {
  while (find_levels()) {
    next_.assign(leaving_.size(), 0);
    while (push(kUncuttable) > 0) {
    }
  }
  // With the sink is only what can still reach it.
  std::vector<bool> result(leaving_.size(), true);
  result[kSink] = false;
  std::vector<int> queue = {kSink};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (int index : leaving_[static_cast<size_t>(queue[i])]) {
      const int from = arcs_[static_cast<size_t>(index)].to;
      if (arcs_[static_cast<size_t>(index ^ 1)].left == 0 || !result[static_cast<size_t>(from)]) continue;
      result[static_cast<size_t>(from)] = false;
      queue.push_back(from);
    }
  }
  return result;
}

}  // namespace plimsoll
