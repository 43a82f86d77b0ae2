#include "observe/verdict_stairs.h"

#include <algorithm>
#include <cmath>

namespace plimsoll {

namespace {

constexpr double kStepShare = 0.06;  // of the level: what rises by less at once is no step
constexpr size_t kStepPoints = 3;    // that a step takes at most
constexpr size_t kFewestSteps = 4;
constexpr double kInSteps = 0.8;  // of the whole rise
constexpr double kOffLine =
    0.12;  // of the time from the first step to now: a step that is farther away is on no line
constexpr double kOverdue = 1.6;  // of the time a stair should take

// Where a stair was left, and how high it was.
Points find_corners(const Points& points, double material, double& in_steps) {
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
  return corners;
}

}  // namespace

std::optional<Stairs> find_stairs(const Points& points, double material) {
  if (points.size() < 2) return std::nullopt;
  double in_steps = 0;
  const Points corners = find_corners(points, material, in_steps);
  if (corners.size() < kFewestSteps) return std::nullopt;
  const double rise = points.back().y - points.front().y, now = points.back().x;
  if (in_steps < kInSteps * rise || in_steps > 1.3 * rise) return std::nullopt;
  const double slope = median_slope(corners);
  if (!(slope > 0)) return std::nullopt;
  std::vector<double> starts;  // x at which the line through each corner would be at 0
  for (const Point& corner : corners) starts.push_back(corner.x - corner.y / slope);
  const double start = quantile(starts, 0.5), span = now - corners.front().x;
  for (const double one : starts) {
    if (std::abs(one - start) > kOffLine * span) return std::nullopt;
  }
  const double last = corners.back().x, next = start + points.back().y / slope;
  if (now - last > kOverdue * std::max(next - last, 0.0)) return std::nullopt;
  return Stairs{static_cast<int>(corners.size()), slope, corners.front().x,
                points.back().y - corners.front().y};
}

}  // namespace plimsoll
