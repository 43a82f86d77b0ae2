// How one series of figures moves: pure functions of numbers, robust against noise, spikes and collection.
#pragma once

#include "observe/verdict_numbers.h"
#include "plimsoll/observe.h"

namespace plimsoll {

enum class Course {
  kUnclear,
  kFlat,     // never moved
  kStopped,  // moved, and stays where it is
  kSlowing,  // still rises, ever more slowly
  kGrowing,  // rises, as fast as before
};

struct Trend {
  Course course = Course::kUnclear;
  double slope = 0, low = 0, high = 0;  // of y per x, with its 95 % interval; of the part from `since`
  double since = 0;                     // x from which on the course holds
  double rise = 0;                      // of the lower envelope from there to the end
  double seen_x = 0;                    // over which `rise` was seen: from its first low to its last
  double total_rise = 0;                // of the lower envelope, from the first to the last stretch
  double level = 0;                     // now
  double peak = 0;
  int stretches = 0, rising_stretches = 0;  // that the course was judged by
  double cycle = 0;                         // the longest distance in x between two collections; 0: none
  double late_share = 1;                    // rate of the second half against that of the first
  double needed_x = 0;                      // kUnclear: about how much more of x would do
  GrowthRivals rivals;                      // kGrowing, or kUnclear because of them
  bool slight = false;                      // kGrowing: enough in all, too little in its last part alone
  double confidence = 0;                    // that it is growth that goes on, all rivals weighed
};

// `material`: a rise below it is none. `least_cycle`: it is known to rise and fall at least so slowly; 0:
// not.
Trend find_trend(const Points& points, double material, double least_cycle = 0);

// What is known only at `marks`: `trend`, of all of it, is replaced if they are surer.
void weigh_marks(const Points& points, const Points& marks, double material, Trend& trend);

}  // namespace plimsoll
