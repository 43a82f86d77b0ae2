#include "plan/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace plimsoll::plan {
namespace {

class Checker {
 public:
  Checker(const Problem& problem, const Placement& placement, size_t limit)
      : problem_(problem), placement_(placement), limit_(limit) {}

  std::vector<std::string> run() {
    if (problem_.buffers.size() != placement_.offsets.size()) {
      report("{} buffers but {} offsets", problem_.buffers.size(), placement_.offsets.size());
      return faults_;
    }
    for (size_t i = 0; i < problem_.buffers.size(); ++i) check_buffer(i);
    if (faults_.empty()) check_overlaps();
    if (faults_.empty()) check_peaks();
    return faults_;
  }

 private:
  template <typename... Args>
  void report(fmt::format_string<Args...> format, Args&&... args) {
    if (faults_.size() < limit_) faults_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void check_buffer(size_t i) {
    const Buffer& b = problem_.buffers[i];
    const int64_t offset = placement_.offsets[i];
    if (b.size < 0) report("buffer {}: negative size {}", i, b.size);
    if (b.lower >= b.upper) report("buffer {}: empty lifetime [{}, {})", i, b.lower, b.upper);
    if (b.space < 0) report("buffer {}: negative space {}", i, b.space);
    if (offset < 0) report("buffer {}: not placed (offset {})", i, offset);
    if (b.alignment < 1 || offset % b.alignment != 0) {
      report("buffer {}: offset {} is not a multiple of {}", i, offset, b.alignment);
    }
    if (b.offset && *b.offset != offset) {
      report("buffer {}: pinned to offset {} but placed at {}", i, *b.offset, offset);
    }
    int64_t end;
    if (__builtin_add_overflow(offset, b.size, &end)) report("buffer {}: offset {} overflows", i, offset);
  }

  // Sweeps over time with the set of live byte ranges per space; ends leave before starts enter.
  void check_overlaps() {
    std::vector<size_t> starts;
    for (size_t i = 0; i < problem_.buffers.size(); ++i) {
      if (problem_.buffers[i].size > 0) starts.push_back(i);
    }
    std::vector<size_t> ends = starts;
    const auto& buffers = problem_.buffers;
    std::sort(starts.begin(), starts.end(),
              [&](size_t a, size_t b) { return buffers[a].lower < buffers[b].lower; });
    std::sort(ends.begin(), ends.end(),
              [&](size_t a, size_t b) { return buffers[a].upper < buffers[b].upper; });
    size_t next_end = 0;
    for (size_t i : starts) {
      for (; buffers[ends[next_end]].upper <= buffers[i].lower; ++next_end) leave(ends[next_end]);
      enter(i);
    }
  }

  void enter(size_t i) {
    const Buffer& b = problem_.buffers[i];
    const int64_t begin = placement_.offsets[i], end = begin + b.size;
    auto& live = live_[b.space];
    auto above = live.lower_bound(begin);
    if (above != live.end() && above->first < end) collide(i, above->second);
    if (above != live.begin()) {
      const size_t below = std::prev(above)->second;
      if (placement_.offsets[below] + problem_.buffers[below].size > begin) collide(i, below);
    }
    live.emplace(begin, i);
  }

  void leave(size_t i) {
    auto& live = live_[problem_.buffers[i].space];
    const auto found = live.find(placement_.offsets[i]);
    if (found != live.end() && found->second == i) live.erase(found);
  }

  void collide(size_t a, size_t b) {
    const Buffer &x = problem_.buffers[a], &y = problem_.buffers[b];
    const int64_t p = placement_.offsets[a], q = placement_.offsets[b];
    report("buffers {} and {} share bytes [{}, {}) during [{}, {})", std::min(a, b), std::max(a, b),
           std::max(p, q), std::min(p + x.size, q + y.size), std::max(x.lower, y.lower),
           std::min(x.upper, y.upper));
  }

  void check_peaks() {
    std::map<int, int64_t> peaks;
    for (size_t i = 0; i < problem_.buffers.size(); ++i) {
      const Buffer& b = problem_.buffers[i];
      int64_t& peak = peaks[b.space];
      if (b.size > 0) peak = std::max(peak, placement_.offsets[i] + b.size);
    }
    if (!peaks.empty() && peaks.rbegin()->first >= static_cast<int>(placement_.peak.size())) {
      report("space {} has no peak", peaks.rbegin()->first);
      return;
    }
    for (size_t s = 0; s < placement_.peak.size(); ++s) check_peak(s, peaks[static_cast<int>(s)]);
  }

  void check_peak(size_t space, int64_t peak) {
    if (placement_.peak[space] != peak) {
      report("space {}: peak is {} but {} was told", space, peak, placement_.peak[space]);
    }
    if (problem_.capacity.empty()) return;
    if (space >= problem_.capacity.size()) {
      report("space {} has no capacity", space);
    } else if (peak > problem_.capacity[space]) {
      report("space {}: peak {} exceeds capacity {}", space, peak, problem_.capacity[space]);
    }
  }

  const Problem& problem_;
  const Placement& placement_;
  const size_t limit_;
  std::vector<std::string> faults_;
  std::map<int, std::map<int64_t, size_t>> live_;  // space -> offset -> buffer
};

}  // namespace

std::vector<std::string> check(const Problem& problem, const Placement& placement, size_t limit) {
  return Checker(problem, placement, limit).run();
}

}  // namespace plimsoll::plan
