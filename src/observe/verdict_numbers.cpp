#include "observe/verdict_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace plimsoll {

namespace {

constexpr size_t kSlopePoints = 160;  // pairs grow with their square

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

}  // namespace

double spread(const std::vector<double>& values) {
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

double usual_step(const Points& points) {
  std::vector<double> steps;
  for (size_t i = 1; i < points.size(); ++i) {
    if (points[i].y > points[i - 1].y) steps.push_back(points[i].y - points[i - 1].y);
  }
  return quantile(std::move(steps), 0.5);
}

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

}  // namespace plimsoll
