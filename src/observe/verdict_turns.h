// Where a series falls and rises again: collections, and what each of them left. Pure functions.
#pragma once

#include <optional>

#include "observe/verdict_numbers.h"

namespace plimsoll {

// Programs are loaded in the first seconds: nothing that falls then was collected.
Points after_start(const Points& points);
// Without single points that stick out: a copying collector's second space, or a sample that met a request.
Points without_spikes(const Points& points);
// How far y fell at most from the highest it had reached.
double deepest_fall(const Points& points);

struct Turns {
  Points highs, lows;  // each low with the high before it
};
// Where y falls by `depth` and rises by it again. There is at least one point.
Turns find_turns(const Points& points, double depth);
std::vector<double> distances(const Points& lows);  // in x, from each to the next

// A rise by few marks, too few for a curve: what collections left, or where stairs were left.
struct MarkedRise {
  int marks = 0;
  double slope = 0, since = 0;
  double seen_x = 0, rise = 0;  // from the first mark on
};

// A heap that is collected seldom: too few lows for a line through them, but what lives after each of its
// collections, and what it reaches before the next, is more every time, at about the same rate. Where there
// are only two, what it held at first is a low too.
std::optional<MarkedRise> find_rising_lows(const Points& points, const Turns& turns, double material);

// What is known only at a few moments, such as what a collector left: it rises from each to the next at about
// the same rate, for four of them at least and a good part of `points`' x, up to now.
std::optional<MarkedRise> find_rising_marks(const Points& points, const Points& marks, double material);

}  // namespace plimsoll
