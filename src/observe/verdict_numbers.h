// Points of a series, and robust figures of them: pure functions.
#pragma once

#include <cstddef>
#include <vector>

namespace plimsoll {

struct Point {
  double x = 0;  // iterations, or seconds
  double y = 0;
};
using Points = std::vector<Point>;  // in the order of x

std::vector<double> xs(const Points& points);
std::vector<double> ys(const Points& points);
std::vector<double> residuals(const Points& points, double slope);

double quantile(std::vector<double> values, double share);  // 0 if empty
double spread(const std::vector<double>& values);           // a standard deviation, if they are normal
double noise_of(const Points& points);                      // of y, from one point to the next
// By how much the series rises from one point to the next, usually: a low is missed by as much.
double usual_step(const Points& points);

// The median of all slopes between two points; thinned to a bounded number of them.
double median_slope(const Points& points);
// Half the width of the 95 % interval of the slope: residuals are drawn again in blocks, because neighbours
// are alike. Always with the same numbers.
double slope_margin(const Points& points, double slope);

}  // namespace plimsoll
