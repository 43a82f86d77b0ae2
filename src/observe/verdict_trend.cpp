#include "observe/verdict_trend.h"

#include <algorithm>
#include <cmath>

#include "observe/verdict_envelope.h"
#include "observe/verdict_rivals.h"
#include "observe/verdict_stairs.h"

namespace plimsoll {

namespace {

constexpr size_t kFewestPoints = 12;
constexpr double kStoppedShare = 0.12;  // of a rate: what is left of it is none
constexpr double kRounding = 0.025;     // of a slope, that allocators, dictionaries and pages add or hide
constexpr double kOutgrown = 3;         // a rise by so many times the deepest fall is no part of a cycle
constexpr size_t kEnoughCycles = 6;     // to tell the usual one from the longest
constexpr double kTailShare = 0.45;     // of a rise, that 60 % of the time have at least if it goes on
constexpr double kLittleDoubt = 0.85;
constexpr double kKnownMargin = 0.5;  // of a slope: with a wider interval it is not known

// Slope and interval from `since` on. Whether the interval is narrow enough to call the slope known.
bool measure(const Points& points, const Points& envelope, Trend& trend) {
  Points part;
  for (const Point& point : trend.cycle > 0 ? envelope : points) {
    if (point.x >= trend.since) part.push_back(point);
  }
  trend.slope = median_slope(part);
  const double margin = slope_margin(part, trend.slope);
  const double wider = margin + kRounding * std::abs(trend.slope);
  trend.low = trend.slope - wider;
  trend.high = trend.slope + wider;
  return margin <= kKnownMargin * trend.slope;
}

void take(const Window& window, Trend& trend) {
  trend.since = window.since;
  trend.rise = window.rise;
  trend.seen_x = window.seen_x;
  trend.stretches = window.stretches;
  trend.rising_stretches = window.rising;
  trend.late_share = window.late_share;
}

// Too few cycles for a trend. What now reaches no higher than it did before does not grow.
void judge_few_cycles(const Points& points, double material, Trend& trend) {
  const auto middle = static_cast<std::ptrdiff_t>(points.size() / 2);
  const double before = quantile(ys(Points(points.begin(), points.begin() + middle)), 0.98);
  const double after = quantile(ys(Points(points.begin() + middle, points.end())), 0.98);
  if (after <= before + material) trend.course = Course::kStopped;
  const double span = points.back().x - points.front().x;
  trend.needed_x = std::max(span, 4.4 * trend.cycle - span);
}

void judge_unsteady(const Window& tail, const Window& last, double material, Trend& trend) {
  take(tail, trend);
  const bool noise = !last.significant && !tail.significant;
  const bool over = std::abs(last.rise) <= material || last.rise <= 0.03 * std::abs(trend.total_rise);
  if (over || noise) {
    trend.course = std::abs(trend.total_rise) > material ? Course::kStopped : Course::kFlat;
  } else if (tail.slowing || last.slowing) {
    trend.course = tail.late_share < kStoppedShare ? Course::kStopped : Course::kSlowing;
    if (!tail.slowing) take(last, trend);
  }
}

Points first_share(const Points& points, double share) {
  const auto count = static_cast<std::ptrdiff_t>(share * static_cast<double>(points.size())) + 1;
  return Points(points.begin(), points.begin() + count);
}

Points last_share(const Points& points, double share) {
  const auto count = static_cast<std::ptrdiff_t>(share * static_cast<double>(points.size())) + 1;
  return Points(points.end() - count, points.end());
}

// `cycle`: no stretch is shorter, so that each has a low; `range`: of what is no trend.
Trend trend_with(const Points& points, double material, double cycle, double range) {
  Trend trend;
  trend.cycle = cycle;
  if (cycle > 0) material = std::max({material, 0.1 * range, 2 * usual_step(points)});
  trend.peak = quantile(ys(points), 1);
  const Envelope found = lower_envelope(points, trend.cycle);
  const Points& envelope = found.lows;
  if (!envelope.empty()) {
    trend.level = envelope.back().y;
    trend.total_rise = envelope.back().y - envelope.front().y;
  }
  if (envelope.size() < kFewestStretches) {
    judge_few_cycles(points, material, trend);
    return trend;
  }
  const auto from = [&](double share) {
    const size_t count = envelope.size();
    return std::min(static_cast<size_t>(share * static_cast<double>(count)), count - kFewestStretches);
  };
  const Window all = look_at(found, 0, material), tail = look_at(found, from(0.4), material),
               last = look_at(found, from(0.6), material);
  Trend growing;
  for (const Window* window : {&all, &tail, &last}) {
    // What is too little in the last part may be enough in all, if it went on there.
    const bool went_on = tail.steady || tail.rise > kTailShare * all.rise;
    if (!window->steady || !is_record(envelope, *window) || (window == &all && !went_on)) continue;
    Trend one = trend;
    take(*window, one);
    if (!measure(points, envelope, one)) continue;
    one.course = Course::kGrowing;
    one.slight = window == &all && !tail.steady;
    one.rivals = find_rivals(points, envelope, one);
    one.confidence = leak_confidence(one.rivals);
    // The longest window that leaves little doubt; a warm-up may be what is doubtful in it.
    if (growing.course != Course::kGrowing ||
        (growing.confidence < kLittleDoubt && one.confidence > growing.confidence))
      growing = one;
  }
  if (growing.course == Course::kGrowing) return growing;
  judge_unsteady(tail, last, material, trend);
  if (trend.course == Course::kUnclear) trend.needed_x = points.back().x - points.front().x;
  measure(points, envelope, trend);
  return trend;
}

// A rise by few marks has the confidence that their number was given.
void take_if_surer(const MarkedRise& rising, const GrowthRivals& rivals, Trend& trend) {
  const double confidence = leak_confidence(rivals);
  if (trend.course == Course::kGrowing && trend.confidence >= confidence) return;
  trend.course = Course::kGrowing;
  trend.since = rising.since;
  trend.seen_x = rising.seen_x;
  trend.rise = rising.rise;
  trend.slope = rising.slope;
  trend.low = (1 - kKnownMargin) * rising.slope;
  trend.high = (1 + kKnownMargin) * rising.slope;
  const bool are_stairs = rivals.stairs > 0;
  trend.stretches = trend.rising_stretches = are_stairs ? rising.marks : rising.marks - 1;
  if (are_stairs) trend.cycle = 0;
  trend.rivals = rivals;
  trend.confidence = confidence;
}

Trend find_plain_trend(const Points& points, double material, double least_cycle) {
  if (points.size() < kFewestPoints || !(points.back().x > points.front().x)) return {};
  const std::vector<double> rest = residuals(points, median_slope(points));
  const double range = quantile(rest, 0.98) - quantile(rest, 0.02);
  const double depth = std::max({0.2 * range, 4 * noise_of(points), 0.25 * material});
  const Points started = after_start(points), calm = without_spikes(started);
  const Turns turns = find_turns(calm, depth);
  const std::vector<double> cycles = distances(turns.lows);
  const double longest = std::max(least_cycle, quantile(cycles, 1)), usual = quantile(cycles, 0.5);
  const Points& whole = longest > 0 ? started : points;
  Trend trend = trend_with(whole, material, longest, range);
  const auto is_sure = [](const Trend& one) {
    return one.course == Course::kGrowing && one.confidence >= kLittleDoubt;
  };
  if (is_sure(trend) || longest == 0 || least_cycle > 0) return trend;
  // Collections that come at random are seldom as far apart as the longest time between two of them. And what
  // rose by many times what it ever fell was not collected: as noise the falls do no harm.
  const double rise = quantile(ys(last_share(whole, 0.1)), 0.1) - quantile(ys(first_share(whole, 0.1)), 0.9);
  const bool outgrown = rise > kOutgrown * deepest_fall(calm);
  if (outgrown || cycles.size() >= kEnoughCycles) {
    const Trend other = trend_with(whole, material, outgrown ? 0 : usual, range);
    if (other.course == Course::kGrowing && other.confidence > trend.confidence) trend = other;
  }
  if (is_sure(trend)) return trend;
  if (const auto rising = find_rising_lows(started, find_turns(started, depth), material); rising) {
    GrowthRivals rivals;
    rivals.turns = rising->marks;
    take_if_surer(*rising, rivals, trend);
  }
  return trend;
}

}  // namespace

Trend find_trend(const Points& points, double material, double least_cycle) {
  Trend trend = find_plain_trend(points, material, least_cycle);
  if (points.size() < kFewestPoints || least_cycle > 0) return trend;
  if (const auto stairs = find_stairs(without_spikes(after_start(points)), material); stairs) {
    GrowthRivals rivals;
    rivals.stairs = stairs->marks;
    take_if_surer(*stairs, rivals, trend);
  }
  return trend;
}

void weigh_marks(const Points& points, const Points& marks, double material, Trend& trend) {
  const auto rising = find_rising_marks(points, marks, material);
  if (!rising) return;
  GrowthRivals rivals;
  rivals.turns = rising->marks;
  take_if_surer(*rising, rivals, trend);
}

}  // namespace plimsoll
