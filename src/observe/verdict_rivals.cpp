#include "observe/verdict_rivals.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace plimsoll {

namespace {

constexpr size_t kBins = 40;
constexpr double kStartUp = 0.04;  // of x, left out: programs are loaded then
constexpr double kOfTwoTurns = 0.81, kOfFourStairs = 0.82, kOfAnother = 0.04,
                 kMostOfTurns = 0.93;  // given: there are too few of them to fit it
constexpr double kEnoughBytes = 4 << 20, kOfSmall = 1.2;
constexpr double kLargeShare = 0.25, kLargest = 4, kOfLarge = 1.6;
constexpr double kFinest = 0.01;  // of the rise: better than that no model is known to be

// Medians of equal stretches; their x from 0 to 1.
Points bins_of(const Points& points, double from) {
  const double span = points.back().x - from;
  std::vector<std::vector<double>> ys(kBins);
  for (const Point& point : points) {
    if (point.x < from) continue;
    const auto index = static_cast<size_t>((point.x - from) / span * kBins);
    ys[std::min(index, kBins - 1)].push_back(point.y);
  }
  Points bins;
  for (size_t i = 0; i < kBins; ++i) {
    if (!ys[i].empty()) bins.push_back({(static_cast<double>(i) + 0.5) / kBins, quantile(ys[i], 0.5)});
  }
  return bins;
}

Points rescaled(const Points& lows, double from) {
  Points part;
  const double span = lows.back().x - from;
  for (const Point& low : lows) {
    if (low.x >= from) part.push_back({span > 0 ? (low.x - from) / span : 0, low.y});
  }
  return part;
}

using Shape = std::function<double(double)>;

// What is left of the squares when y is a + b f(x), or a + b f(x) + c g(x) with b and c not below 0.
struct Left {
  double base = 0, height = 0;
  double squares = 0;
  double correlation = 0;  // of neighbours
};

Left fit(const Points& points, const Shape& shape) {
  double n = 0, f = 0, y = 0, ff = 0, fy = 0;
  for (const Point& point : points) {
    const double value = shape(point.x);
    n += 1, f += value, y += point.y, ff += value * value, fy += value * point.y;
  }
  const double variance = ff - f * f / n;
  const double b = variance > 0 ? std::max(0.0, (fy - f * y / n) / variance) : 0, a = (y - b * f) / n;
  Left left{a, b};
  double before = 0, products = 0;
  for (const Point& point : points) {
    const double rest = point.y - a - b * shape(point.x);
    left.squares += rest * rest;
    products += rest * before;
    before = rest;
  }
  left.correlation = left.squares > 0 ? products / left.squares : 0;
  return left;
}

// Rates that fall or rise from 1 to `share` over the whole.
Shape exponential(double share) {
  if (std::abs(share - 1) < 1e-9) return [](double x) { return x; };
  const double log = std::log(share);
  return [log](double x) { return (std::exp(log * x) - 1) / log; };
}

Shape logarithmic(double scale) {
  return [scale](double x) { return std::log1p(x / scale); };
}

// A store that is filled until `full`, and then stays.
Shape ramp(double full) {
  return [full](double x) { return std::min(x, full); };
}

// A warm-up of which 5 % are left after `until`, then a line: of the whole rise of 1 the warm-up has `share`.
Shape line_after(double until, double share) {
  return [until, share](double x) { return share * (1 - std::exp(-3 * x / until)) + (1 - share) * x; };
}

// How likely the shapes are together whose rate goes on, against those that level off.
double weigh_line(const Points& points, bool with_warm_up) {
  if (points.size() < 4) return 0.5;
  std::vector<Left> lines, curves;
  for (const double share : {0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4})
    curves.push_back(fit(points, exponential(share)));
  for (const double scale : {0.03, 0.1, 0.3}) curves.push_back(fit(points, logarithmic(scale)));
  for (const double full : {0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9})
    curves.push_back(fit(points, ramp(full)));
  for (const double share : {0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.3, 1.6, 2.0, 3.0})
    lines.push_back(fit(points, exponential(share)));
  if (with_warm_up) {
    for (const double until : {0.08, 0.2}) {
      for (const double share : {0.2, 0.4, 0.6, 0.8}) lines.push_back(fit(points, line_after(until, share)));
    }
  }
  const Left* best = &lines.front();
  for (const auto* all : {&lines, &curves}) {
    for (const Left& one : *all) best = one.squares < best->squares ? &one : best;
  }
  const double rise = std::abs(points.back().y - points.front().y);
  const auto count = static_cast<double>(points.size());
  const double finest = count * std::pow(kFinest * rise, 2);
  const double alike = std::clamp(best->correlation, 0.0, 0.9);
  const double independent = std::max(3.0, count * (1 - alike) / (1 + alike));
  const auto weight = [&](const std::vector<Left>& all) {
    double sum = 0;
    for (const Left& one : all)
      sum += std::pow((one.squares + finest + 1e-9) / (best->squares + finest + 1e-9), -independent / 2);
    return sum / static_cast<double>(all.size());
  };
  const double line = weight(lines), curve = weight(curves);
  return line / (line + curve);
}

// A rise in equal steps counts all of them, one in a few large ones hardly more than these.
double count_pieces(const Points& points) {
  double sum = 0, squares = 0;
  double high = points.front().y;
  for (const Point& point : points) {
    if (point.y <= high) continue;
    sum += point.y - high;
    squares += (point.y - high) * (point.y - high);
    high = point.y;
  }
  return squares > 0 ? sum * sum / squares : 0;
}

double recent_share(const Points& points) {
  if (points.size() < 4) return 1;
  const size_t from = points.size() - 1 - std::max<size_t>(1, points.size() / 4);
  const double span = points.back().x - points.front().x, rise = points.back().y - points.front().y;
  const double late_x = points.back().x - points[from].x, late = points.back().y - points[from].y;
  return rise > 0 && late_x > 0 ? late / late_x * span / rise : 0;
}

// The test of Mann and Kendall, for neighbours that do not depend on each other.
double find_order(const Points& points) {
  double sum = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t k = i + 1; k < points.size(); ++k)
      sum += points[k].y > points[i].y ? 1 : points[k].y < points[i].y ? -1 : 0;
  }
  const auto n = static_cast<double>(points.size());
  return sum / std::sqrt(n * (n - 1) * (2 * n + 5) / 18);
}

}  // namespace

GrowthRivals find_rivals(const Points& points, const Points& lows, const Trend& trend) {
  const double begin = points.front().x + kStartUp * (points.back().x - points.front().x);
  const bool cycles = trend.cycle > 0;
  const Points window = cycles ? rescaled(lows, trend.since) : bins_of(points, std::max(begin, trend.since));
  const Points whole = cycles ? rescaled(lows, lows.front().x) : bins_of(points, begin);
  GrowthRivals rivals;
  if (window.size() < 3 || whole.size() < 3) return rivals;
  rivals.line = weigh_line(window, false);
  rivals.line_whole = weigh_line(whole, true);
  rivals.pieces = count_pieces(window);
  rivals.margin = trend.slope > 0 ? (trend.high - trend.low) / (2 * trend.slope) : 1;
  rivals.recent = recent_share(window);
  rivals.order = find_order(window);
  return rivals;
}

double size_of(const GrowthRivals& rivals) {
  if (rivals.bytes <= 0) return 1;
  return std::clamp(std::max(rivals.bytes / kEnoughBytes, rivals.share), 0.05, 1.0);
}

double log_largeness(const GrowthRivals& rivals) {
  if (rivals.bytes <= 0) return 0;
  const double largeness = std::min(rivals.bytes / kEnoughBytes, rivals.share / kLargeShare);
  return std::log(std::clamp(largeness, 1.0, kLargest));
}

// A logistic regression over the tuned half of the corpus and the families, each judged at seven moments of
// its recording; the weight of stairs was given: there are too few of them to fit it. Those of sizes were
// fitted by themselves, later.
double leak_confidence(const GrowthRivals& rivals) {
  // A runtime that has not filled what it fills before it collects cannot be told from a leak.
  constexpr double kCannotTell = 0.7;
  const double most = rivals.nurseries > 0 && rivals.nurseries < 1 ? kCannotTell : 0.99;
  if (rivals.turns > 0) return std::min(kMostOfTurns, kOfTwoTurns + kOfAnother * (rivals.turns - 2));
  if (rivals.stairs > 0)
    return std::min({kMostOfTurns, most, kOfFourStairs + kOfAnother * (rivals.stairs - 4)});
  const double line = std::clamp(rivals.line, 0.02, 0.99);
  double sum = 0.75 + 0.28 * std::log(line / (1 - line)) - 5.34 * std::min(rivals.margin, 0.6) +
               1.37 * std::clamp(rivals.recent, 0.0, 1.0) +
               0.4 * std::log(std::clamp(rivals.pieces, 1.0, 8.0) / 8);
  if (rivals.nurseries > 0) sum += 0.12 + 0.68 * std::log(std::clamp(rivals.nurseries, 0.03, 4.0));
  sum += kOfSmall * std::log(size_of(rivals)) + kOfLarge * line * log_largeness(rivals);
  return std::min(1 / (1 + std::exp(-sum)), most);
}

std::vector<CurvePoint> fit_curve(const Points& points, const Trend& trend) {
  constexpr int kCurvePoints = 24;
  const double from = std::max(trend.since, points.front().x), span = points.back().x - from;
  Points window;
  for (const Point& point : points) {
    if (point.x >= from && span > 0) window.push_back({(point.x - from) / span, point.y});
  }
  if (window.size() < 4) return {};
  Shape best = exponential(1);
  Left left = fit(window, best);
  if (trend.course == Course::kSlowing) {
    for (const double share : {0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6}) {
      const Left one = fit(window, exponential(share));
      if (one.squares < left.squares) left = one, best = exponential(share);
    }
  }
  const double beside = 1.96 * std::sqrt(left.squares / static_cast<double>(window.size()));
  std::vector<CurvePoint> curve;
  for (int i = 0; i <= kCurvePoints; ++i) {
    const double share = static_cast<double>(i) / kCurvePoints;
    const double turn = (trend.high - trend.low) / 2 * std::abs(share - 0.5) * span;
    curve.push_back({from + share * span, left.base + left.height * best(share), beside + turn});
  }
  return curve;
}

}  // namespace plimsoll
