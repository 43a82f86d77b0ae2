#include "observe/verdict_stairs.h"

#include <algorithm>
#include <cmath>

namespace plimsoll {

namespace {

constexpr double kStepShare = 0.06;  // of the level: what rises by less at once is no steep step
constexpr size_t kStepPoints = 3;    // that a steep step takes at most
constexpr double kInSteps = 0.8;     // of the whole rise
constexpr size_t kFewestSteps = 4;
constexpr double kTurnShare = 0.2;  // of what the stairs are off a line: a turn of less is none
constexpr double kOffLine =
    0.12;  // of the time from the first step to now: a step that is farther away is on no line
constexpr double kOverdue = 1.6;  // of the time a stair should take
constexpr double kOfMean = 0.3;   // of the mean rate from stair to stair, that each has at least

// Where a stair was left, and how high it was; of steep ones, which have most of the rise.
Points steep_corners(const Points& points, double material) {
  double in_steps = 0;
  Points corners;
  size_t i = 0;
  while (i + 1 < points.size()) {
    size_t to = i + 1;
    const double least = std::max(material, kStepShare * points[i].y);
    while (to + 1 < points.size() && to - i < kStepPoints && points[to].y - points[i].y < least) ++to;
    if (points[to].y - points[i].y < least) {
      ++i;
      continue;
    }
    while (to + 1 < points.size() && points[to + 1].y > points[to].y + 0.2 * least) ++to;  // the rest of it
    corners.push_back(points[i]);
    in_steps += points[to].y - points[i].y;
    i = to;
  }
  const double rise = points.back().y - points.front().y;
  if (in_steps < kInSteps * rise || in_steps > 1.3 * rise) return {};
  return corners;
}

// Of slow ones too: where one is left it is farthest below the line through all of them.
Points slow_corners(const Points& points, double material) {
  const double slope = median_slope(points);
  Points beside = points;
  std::vector<double> ys;
  for (Point& point : beside) point.y -= slope * point.x, ys.push_back(point.y);
  const double range = quantile(ys, 0.98) - quantile(ys, 0.02);
  Points corners;
  for (const Point& low : find_turns(beside, std::max(kTurnShare * range, 0.5 * material)).lows)
    corners.push_back({low.x, low.y + slope * low.x});
  return corners;
}

std::optional<MarkedRise> stairs_of(const Points& corners, const Points& points, double material) {
  if (corners.size() < kFewestSteps) return std::nullopt;
  const double slope = median_slope(corners), now = points.back().x;
  if (!(slope > 0) || corners.back().y - corners.front().y < 4 * material) return std::nullopt;
  for (size_t i = 1; i < corners.size(); ++i) {
    if (corners[i].y - corners[i - 1].y < kOfMean * slope * (corners[i].x - corners[i - 1].x))
      return std::nullopt;
  }
  std::vector<double> starts;  // x at which the line through each corner would be at 0
  for (const Point& corner : corners) starts.push_back(corner.x - corner.y / slope);
  const double start = quantile(starts, 0.5), span = now - corners.front().x;
  for (const double one : starts) {
    if (std::abs(one - start) > kOffLine * span) return std::nullopt;
  }
  const double last = corners.back().x, next = start + points.back().y / slope;
  if (now - last > kOverdue * std::max(next - last, 0.0)) return std::nullopt;
  const Point& first = corners.front();
  return MarkedRise{static_cast<int>(corners.size()), slope, first.x, now - first.x,
                    points.back().y - first.y};
}

}  // namespace

std::optional<MarkedRise> find_stairs(const Points& points, double material) {
  if (points.size() < 2) return std::nullopt;
  const auto steep = stairs_of(steep_corners(points, material), points, material);
  return steep ? steep : stairs_of(slow_corners(points, material), points, material);
}

}  // namespace plimsoll
