#include "observe/verdict_trend.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "observe/verdict_rivals.h"
#include "observe/verdict_stairs.h"

namespace plimsoll {

namespace {

constexpr size_t kMostStretches = 16;
constexpr size_t kFewestStretches = 4;
constexpr size_t kEnoughStretches = 8;
constexpr size_t kFewestPoints = 12;
constexpr size_t kSlopePoints = 160;    // pairs grow with their square
constexpr double kSteadyShare = 0.5;    // a rate that stays above this share of itself does not slow down
constexpr double kSlowingShare = 0.45;  // below it, it does; between the two it is unclear
constexpr double kRisingPairs = 0.62;   // of all pairs of stretches, the later one is higher: growth goes on
constexpr double kRisingPairsOfFew = 0.8;  // where there are few of them
constexpr double kStoppedShare = 0.12;     // of a rate: what is left of it is none
constexpr double kRounding = 0.025;        // of a slope, that allocators, dictionaries and pages add or hide
constexpr double kLowShare = 0.1;          // the quantile that is a stretch's low
constexpr double kOutgrown = 3;            // a rise by so many times the deepest fall is no part of a cycle
constexpr size_t kEnoughCycles = 6;        // to tell the usual one from the longest
constexpr double kTailShare = 0.45;        // of a rise, that 60 % of the time have at least if it goes on
constexpr double kLittleDoubt = 0.85;
constexpr double kStartUp = 0.04;  // of x: programs are loaded then
constexpr size_t kFewestLows = 3;
constexpr double kOfEach = 0.3;           // of the mean rate from low to low, that each has at least
constexpr double kOfDepth = 0.25;         // of what a collection takes, that the lows rose by in all
constexpr double kOfDepthAtFirst = 0.75;  // the same, if the first of them is none of a collection
constexpr double kKnownMargin = 0.5;      // of a slope: with a wider interval it is not known

double spread(const std::vector<double>& values) {  // a standard deviation, if they are normal
  const double middle = quantile(values, 0.5);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - middle));
  return 1.4826 * quantile(std::move(distances), 0.5);
}

std::vector<double> ys(const Points& points) {
  std::vector<double> values;
  for (const Point& point : points) values.push_back(point.y);
  return values;
}

std::vector<double> xs(const Points& points) {
  std::vector<double> values;
  for (const Point& point : points) values.push_back(point.x);
  return values;
}

std::vector<double> residuals(const Points& points, double slope) {
  std::vector<double> values;
  for (const Point& point : points) values.push_back(point.y - slope * point.x);
  return values;
}

double noise_of(const Points& points) {
  std::vector<double> steps;
  for (size_t i = 1; i < points.size(); ++i) steps.push_back(points[i].y - points[i - 1].y);
  return spread(steps) / std::sqrt(2.0);
}

// By how much the series rises from one point to the next, usually: a low is missed by as much.
double usual_step(const Points& points) {
  std::vector<double> steps;
  for (size_t i = 1; i < points.size(); ++i) {
    if (points[i].y > points[i - 1].y) steps.push_back(points[i].y - points[i - 1].y);
  }
  return quantile(std::move(steps), 0.5);
}

// Without single points that stick out: a copying collector's second space, or a sample that met a request.
Points without_spikes(const Points& points) {
  Points calm = points;
  for (size_t i = 1; i + 1 < points.size(); ++i) {
    const double a = points[i - 1].y, b = points[i].y, c = points[i + 1].y;
    calm[i].y = std::max(std::min(a, b), std::min(std::max(a, b), c));
  }
  return calm;
}

// Programs are loaded in the first seconds: nothing that falls then was collected.
Points after_start(const Points& points) {
  const double from = points.front().x + kStartUp * (points.back().x - points.front().x);
  const auto first =
      std::find_if(points.begin(), points.end(), [from](const Point& point) { return point.x >= from; });
  return Points(first, points.end());
}

std::vector<double> distances(const Points& lows) {
  std::vector<double> cycles;
  for (size_t i = 1; i < lows.size(); ++i) cycles.push_back(lows[i].x - lows[i - 1].x);
  return cycles;
}

// How far y fell at most from the highest it had reached.
double deepest_fall(const Points& points) {
  double high = points.front().y, fall = 0;
  for (const Point& point : points) {
    high = std::max(high, point.y);
    fall = std::max(fall, high - point.y);
  }
  return fall;
}

struct Envelope {
  Points lows;               // where no cycles are, at the middle of each stretch
  std::vector<double> seen;  // where each low was really seen: growth puts it at the beginning of its stretch
};

// The lower envelope: a low quantile of each stretch of x, or its lowest point where there are cycles. Every
// stretch is as long as a cycle at least, so that it has a low; as two, if enough are left, because samples
// miss the lowest point by chance.
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

struct Window {
  bool steady = false, slowing = false, significant = false;
  double rise = 0, late_share = 1;
  int stretches = 0, rising = 0;
  double since = 0, seen_x = 0;
};

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

// What rises as part of a wave is no growth before it is higher than the wave was before.
bool is_record(const Points& envelope, const Window& window) {
  double before = -std::numeric_limits<double>::infinity();
  for (const Point& point : envelope) {
    if (point.x < window.since) before = std::max(before, point.y);
  }
  return envelope.back().y - before > 0.3 * window.rise;
}

class Random {  // the same for everybody, always
 public:
  size_t below(size_t limit) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>((state_ >> 33) % limit);
  }

 private:
  uint64_t state_ = 20261116;
};

double least_squares_slope(const Points& points) {
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  for (const Point& point : points) mean_x += point.x, mean_y += point.y;
  mean_x /= static_cast<double>(points.size());
  mean_y /= static_cast<double>(points.size());
  for (const Point& point : points) {
    xx += (point.x - mean_x) * (point.x - mean_x);
    xy += (point.x - mean_x) * (point.y - mean_y);
  }
  return xx > 0 ? xy / xx : 0;
}

// Half the width of the 95 % interval of the slope: residuals are drawn again in blocks, because neighbours
// are alike.
double slope_margin(const Points& points, double slope) {
  const size_t count = points.size();
  if (count < 4) return std::abs(slope);
  std::vector<double> rest = residuals(points, slope);
  const double middle = quantile(rest, 0.5), far = 5 * spread(rest);
  for (double& one : rest)
    one = std::clamp(one, middle - far, middle + far);  // a single wild one does not count
  const size_t block = std::max<size_t>(1, count / 8);
  Random random;
  std::vector<double> slopes;
  Points drawn = points;
  for (int round = 0; round < 200; ++round) {
    for (size_t i = 0; i < count; i += block) {
      const size_t from = random.below(count - block + 1);
      for (size_t k = 0; k < block && i + k < count; ++k) drawn[i + k].y = rest[from + k];
    }
    slopes.push_back(least_squares_slope(drawn));
  }
  return (quantile(slopes, 0.975) - quantile(slopes, 0.025)) / 2;
}

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

}  // namespace

namespace {

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

}  // namespace

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

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), values.begin() + below, values.end());
  const double low = values[static_cast<size_t>(below)];
  if (static_cast<size_t>(below) + 1 >= values.size()) return low;
  const double high = *std::min_element(values.begin() + below + 1, values.end());
  return low + (place - static_cast<double>(below)) * (high - low);
}

double median_slope(const Points& points) {
  const size_t stride = points.size() / kSlopePoints + 1;
  std::vector<double> slopes;
  for (size_t i = 0; i < points.size(); i += stride) {
    for (size_t k = i + stride; k < points.size(); k += stride) {
      const double dx = points[k].x - points[i].x;
      if (dx > 0) slopes.push_back((points[k].y - points[i].y) / dx);
    }
  }
  return quantile(std::move(slopes), 0.5);
}

namespace {

bool all_rise(const Points& points, double least_rate) {
  for (size_t i = 1; i < points.size(); ++i) {
    if (points[i].y - points[i - 1].y < least_rate * (points[i].x - points[i - 1].x)) return false;
  }
  return true;
}

// A heap that is collected seldom: too few lows for a line through them, but what lives after each of its
// collections, and what it reaches before the next, is more every time. What it held at first is a low too.
bool rises_as_a_whole(const Points& points, const Turns& turns, double material, Trend& trend) {
  const size_t count = turns.lows.size();
  Points lows = turns.lows;
  if (count > 0 && count < kFewestLows && points.front().y < lows.front().y)
    lows.insert(lows.begin(), points.front());
  if (lows.size() < kFewestLows) return false;
  const double rise = lows.back().y - lows.front().y, rate = rise / (lows.back().x - lows.front().x);
  double depth = 0;
  for (size_t i = 0; i < count; ++i)
    depth += (turns.highs[i].y - turns.lows[i].y) / static_cast<double>(count);
  const double higher = turns.highs.back().y - turns.highs.front().y;
  const double of_depth = lows.size() > count ? kOfDepthAtFirst : kOfDepth;
  if (rise < std::max(4 * material, of_depth * depth) || !all_rise(lows, kOfEach * rate)) return false;
  const double meanwhile = turns.highs.back().x - turns.highs.front().x;
  if (!all_rise(turns.highs, 0) || higher < kOfEach * rate * meanwhile) return false;
  GrowthRivals rivals;
  rivals.turns = static_cast<double>(count);
  if (trend.course == Course::kGrowing && trend.confidence >= leak_confidence(rivals)) return true;
  trend.course = Course::kGrowing;
  trend.since = turns.lows.front().x;
  trend.seen_x = turns.lows.back().x - trend.since;
  trend.rise = turns.lows.back().y - turns.lows.front().y;
  trend.stretches = trend.rising_stretches = static_cast<int>(count) - 1;
  trend.slope = median_slope(turns.lows);
  trend.low = (1 - kKnownMargin) * trend.slope;
  trend.high = (1 + kKnownMargin) * trend.slope;
  trend.rivals = rivals;
  trend.confidence = leak_confidence(rivals);
  return true;
}

}  // namespace

namespace {

bool rises_in_stairs(const Points& calm, double material, Trend& trend) {
  const auto stairs = find_stairs(calm, material);
  if (!stairs) return false;
  Trend rising = trend;
  rising.course = Course::kGrowing;
  rising.cycle = 0;
  rising.since = stairs->since;
  rising.seen_x = calm.back().x - stairs->since;
  rising.rise = stairs->rise;
  rising.stretches = rising.rising_stretches = stairs->steps;
  rising.slope = stairs->slope;
  rising.low = (1 - kKnownMargin) * stairs->slope;
  rising.high = (1 + kKnownMargin) * stairs->slope;
  rising.rivals = {};
  rising.rivals.stairs = stairs->steps;
  rising.confidence = leak_confidence(rising.rivals);
  if (trend.course == Course::kGrowing && trend.confidence >= rising.confidence) return false;
  trend = rising;
  return true;
}

Trend find_plain_trend(const Points& points, double material, double least_cycle);

}  // namespace

Trend find_trend(const Points& points, double material, double least_cycle) {
  Trend trend = find_plain_trend(points, material, least_cycle);
  if (points.size() >= kFewestPoints && least_cycle == 0)
    rises_in_stairs(without_spikes(after_start(points)), material, trend);
  return trend;
}

namespace {

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
  if (!is_sure(trend)) rises_as_a_whole(started, find_turns(started, depth), material, trend);
  return trend;
}

}  // namespace

}  // namespace plimsoll
