#include "observe/verdict_turns.h"

#include <algorithm>

namespace plimsoll {

namespace {

constexpr double kStartUp = 0.04;  // of x: programs are loaded then
constexpr size_t kFewestLows = 3;
constexpr double kOfEach = 0.3;           // of the mean rate from low to low, that each has at least
constexpr double kOfDepth = 0.25;         // of what a collection takes, that the lows rose by in all
constexpr double kOfDepthAtFirst = 0.75;  // the same, if the first of them is none of a collection

constexpr size_t kFewestMarks = 4;
constexpr double kOfTime = 0.4;   // that the marks are spread over, at least
constexpr double kOverdue = 2.5;  // of the longest time between two marks: nothing is known of now

bool all_rise(const Points& points, double least_rate) {
  for (size_t i = 1; i < points.size(); ++i) {
    if (points[i].y - points[i - 1].y < least_rate * (points[i].x - points[i - 1].x)) return false;
  }
  return true;
}

// It reached what it reaches now long ago, by the longest time from low to low.
bool is_over(const Points& points, const Turns& turns, double material) {
  if (turns.lows.size() < kFewestLows) return false;
  const auto most = std::max_element(points.begin(), points.end(),
                                     [](const Point& a, const Point& b) { return a.y < b.y; });
  const auto reached = std::find_if(points.begin(), points.end(),
                                    [&](const Point& point) { return point.y >= most->y - material; });
  return points.back().x - reached->x > kOverdue * quantile(distances(turns.lows), 1);
}

}  // namespace

Points without_spikes(const Points& points) {
  Points calm = points;
  for (size_t i = 1; i + 1 < points.size(); ++i) {
    const double a = points[i - 1].y, b = points[i].y, c = points[i + 1].y;
    calm[i].y = std::max(std::min(a, b), std::min(std::max(a, b), c));
  }
  return calm;
}

Points after_start(const Points& points) {
  const double from = points.front().x + kStartUp * (points.back().x - points.front().x);
  const auto first =
      std::find_if(points.begin(), points.end(), [from](const Point& point) { return point.x >= from; });
  return Points(first, points.end());
}

Turns find_turns(const Points& points, double depth) {
  Point low = points[0], high = points[0];
  bool falling = false;
  Turns turns;
  for (const Point& point : points) {
    if (falling) {
      if (point.y < low.y) low = point;
      if (point.y > low.y + depth) falling = false, high = point, turns.lows.push_back(low);
    } else {
      if (point.y > high.y) high = point;
      if (point.y < high.y - depth) falling = true, low = point, turns.highs.push_back(high);
    }
  }
  if (falling) turns.lows.push_back(low);
  return turns;
}

std::vector<double> distances(const Points& lows) {
  std::vector<double> cycles;
  for (size_t i = 1; i < lows.size(); ++i) cycles.push_back(lows[i].x - lows[i - 1].x);
  return cycles;
}

double deepest_fall(const Points& points) {
  double high = points.front().y, fall = 0;
  for (const Point& point : points) {
    high = std::max(high, point.y);
    fall = std::max(fall, high - point.y);
  }
  return fall;
}

std::optional<MarkedRise> find_rising_lows(const Points& points, const Turns& turns, double material) {
  const size_t count = turns.lows.size();
  Points lows = turns.lows;
  if (count > 0 && count < kFewestLows && points.front().y < lows.front().y)
    lows.insert(lows.begin(), points.front());
  if (lows.size() < kFewestLows) return std::nullopt;
  const double rise = lows.back().y - lows.front().y, rate = rise / (lows.back().x - lows.front().x);
  double depth = 0;
  for (size_t i = 0; i < count; ++i)
    depth += (turns.highs[i].y - turns.lows[i].y) / static_cast<double>(count);
  const double of_depth = lows.size() > count ? kOfDepthAtFirst : kOfDepth;
  if (rise < std::max(4 * material, of_depth * depth) || !all_rise(lows, kOfEach * rate)) return std::nullopt;
  const double higher = turns.highs.back().y - turns.highs.front().y;
  const double meanwhile = turns.highs.back().x - turns.highs.front().x;
  if (!all_rise(turns.highs, 0) || higher < kOfEach * rate * meanwhile) return std::nullopt;
  if (is_over(points, turns, material)) return std::nullopt;
  const Point &first = turns.lows.front(), &last = turns.lows.back();
  return MarkedRise{static_cast<int>(count), median_slope(turns.lows), first.x, last.x - first.x,
                    last.y - first.y};
}

std::optional<MarkedRise> find_rising_marks(const Points& points, const Points& marks, double material) {
  for (size_t from = 0; from + kFewestMarks <= marks.size(); ++from) {  // a warm-up comes first
    const Points part(marks.begin() + static_cast<std::ptrdiff_t>(from), marks.end());
    const Point &first = part.front(), &last = part.back();
    const double span = points.back().x - points.front().x, seen_x = last.x - first.x;
    if (seen_x < kOfTime * span || points.back().x - last.x > kOverdue * quantile(distances(part), 1))
      return std::nullopt;
    const double rise = last.y - first.y;
    if (rise < 4 * material || !all_rise(part, kOfEach * rise / seen_x)) continue;
    return MarkedRise{static_cast<int>(part.size()), median_slope(part), first.x, seen_x, rise};
  }
  return std::nullopt;
}

}  // namespace plimsoll
