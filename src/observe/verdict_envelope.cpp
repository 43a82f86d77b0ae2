#include "observe/verdict_envelope.h"

#include <algorithm>
#include <limits>

namespace plimsoll {

namespace {

constexpr size_t kMostStretches = 16;
constexpr size_t kEnoughStretches = 8;
constexpr double kLowShare = 0.1;       // the quantile that is a stretch's low
constexpr double kSteadyShare = 0.5;    // a rate that stays above this share of itself does not slow down
constexpr double kSlowingShare = 0.45;  // below it, it does; between the two it is unclear
constexpr double kRisingPairs = 0.62;   // of all pairs of stretches, the later one is higher: growth goes on
constexpr double kRisingPairsOfFew = 0.8;  // where there are few of them

}  // namespace

Envelope lower_envelope(const Points& points, double cycle) {
  const double begin = points.front().x, end = points.back().x, span = end - begin;
  const size_t most = std::min(kMostStretches, points.size() / 3);
  size_t count = most;
  if (cycle > 0) {
    const auto twice = static_cast<size_t>(span / (2.2 * cycle));
    count = std::min(most, twice >= kEnoughStretches ? twice : static_cast<size_t>(span / (1.1 * cycle)));
  }
  if (count == 0 || !(span > 0)) return {};
  const double width = span / static_cast<double>(count);
  std::vector<Points> stretches(count);
  for (const Point& point : points) {
    const auto index = static_cast<size_t>((point.x - begin) / width);
    stretches[std::min(index, count - 1)].push_back(point);
  }
  Envelope envelope;
  for (size_t i = 0; i < count; ++i) {
    if (stretches[i].empty()) continue;  // nothing was read there
    if (cycle > 0) {
      envelope.lows.push_back(*std::min_element(stretches[i].begin(), stretches[i].end(),
                                                [](const Point& a, const Point& b) { return a.y < b.y; }));
      envelope.seen.push_back(envelope.lows.back().x);
      continue;
    }
    envelope.lows.push_back(
        {begin + (static_cast<double>(i) + 0.5) * width, quantile(ys(stretches[i]), kLowShare)});
    envelope.seen.push_back(quantile(xs(stretches[i]), kLowShare));
  }
  return envelope;
}

Window look_at(const Envelope& all, size_t from, double material) {
  Window window;
  const Points part(all.lows.begin() + static_cast<std::ptrdiff_t>(from), all.lows.end());
  const size_t count = part.size();
  window.since = part.front().x;
  window.seen_x = all.seen.back() - all.seen[from];
  window.rise = part.back().y - part.front().y;
  window.stretches = static_cast<int>(count) - 1;
  const double step = std::max(0.02 * material, 0.15 * window.rise / window.stretches);
  for (size_t i = 1; i < count; ++i) window.rising += part[i].y - part[i - 1].y > step;
  size_t higher = 0;
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = i + 1; k < count; ++k) higher += part[k].y - part[i].y > step;
  }
  const double needed_pairs = count < kEnoughStretches ? kRisingPairsOfFew : kRisingPairs;
  const size_t pairs = count * (count - 1) / 2;
  const bool rising = static_cast<double>(higher) >= needed_pairs * static_cast<double>(pairs);
  const size_t middle = count / 2;
  const double first =
      median_slope(Points(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(middle) + 1));
  const double second =
      median_slope(Points(part.begin() + static_cast<std::ptrdiff_t>(count - 1 - middle), part.end()));
  window.late_share = first > 0 ? second / first : (second > 0 ? 10 : 0);
  const double scatter = spread(residuals(part, median_slope(part)));
  window.significant = window.rise > 3 * scatter;
  const bool real = window.rise > material && window.significant;
  window.steady = real && rising && window.late_share >= kSteadyShare;
  window.slowing = real && window.late_share < kSlowingShare;
  return window;
}

bool is_record(const Points& envelope, const Window& window) {
  double before = -std::numeric_limits<double>::infinity();
  for (const Point& point : envelope) {
    if (point.x < window.since) before = std::max(before, point.y);
  }
  return envelope.back().y - before > 0.3 * window.rise;
}

}  // namespace plimsoll
