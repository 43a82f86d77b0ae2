// The lower envelope of a series, and how its last part rises. Pure functions.
#pragma once

#include "observe/verdict_numbers.h"

namespace plimsoll {

constexpr size_t kFewestStretches = 4;

struct Envelope {
  Points lows;               // where no cycles are, at the middle of each stretch
  std::vector<double> seen;  // where each low was really seen: growth puts it at the beginning of its stretch
};

// A low quantile of each stretch of x, or its lowest point where there are cycles. Every stretch is as long
// as a cycle at least, so that it has a low; as two, if enough are left, because samples miss the lowest
// point by chance.
Envelope lower_envelope(const Points& points, double cycle);

struct Window {
  bool steady = false, slowing = false, significant = false;
  double rise = 0, late_share = 1;
  int stretches = 0, rising = 0;
  double since = 0, seen_x = 0;
};

// The part from the low with number `from` on; it has kFewestStretches of them at least.
Window look_at(const Envelope& all, size_t from, double material);
// What rises as part of a wave is no growth before it is higher than the wave was before.
bool is_record(const Points& envelope, const Window& window);

}  // namespace plimsoll
