// Other explanations of a rise than that it goes on: a curve that levels off, and a few stairs. Pure
// functions.
#pragma once

#include "observe/verdict_trend.h"

namespace plimsoll {

// `points` is the whole series, `trend` what was found in it; it grows.
GrowthRivals find_rivals(const Points& points, const Points& lows, const Trend& trend);

// The probability that a rise with these rivals is a leak; docs/verdicts.md tells how it was calibrated.
double leak_confidence(const GrowthRivals& rivals);

// A little more of a large program is what allocators and caches do anyway: 1 is enough for a leak, of what
// is less only the clearest line is one.
double size_of(const GrowthRivals& rivals);
// Many megabytes more that are a good part of the program too: what starts up or fills a cache was seldom
// seen to do that for as long as a curve is measured. 0: they are not.
double log_largeness(const GrowthRivals& rivals);

// The line, or the curve that levels off, that explains the points from trend.since on best, with what is
// left beside it; x as in the points.
struct CurvePoint {
  double x = 0, y = 0, margin = 0;
};
std::vector<CurvePoint> fit_curve(const Points& points, const Trend& trend);

}  // namespace plimsoll
