// erf and its slope at points of a grid, computed by the compiler.
#pragma once

#include <array>
#include <cstddef>

namespace plimsoll::kernels {

constexpr int kErfStepsOfOne = 128, kErfLast = 6;  // from there on erf rounds to 1

struct ErfPoint {
  double erf, slope;
};

namespace erf_table {
constexpr long double kTwoOverRootPi = 1.12837916709551257389615890312154517L;

constexpr long double power_of_e(long double x) {  // e^(x / 64), 64 times itself
  long double term = 1, sum = 1;
  for (int i = 1; i < 20; ++i) term *= x / 64 / i, sum += term;
  for (int i = 0; i < 6; ++i) sum *= sum;
  return sum;
}

// erf(x) = slope(x) (x + 2 x^3 / 3 + 4 x^5 / (3 * 5) + ...), all of one sign.
constexpr ErfPoint at(long double x) {
  const long double slope = kTwoOverRootPi * power_of_e(-x * x);
  long double term = x, sum = 0;
  for (int odd = 3; term > sum * 1e-21L; odd += 2) sum += term, term *= 2 * x * x / odd;
  return {static_cast<double>(slope * sum), static_cast<double>(slope)};
}

constexpr auto all() {
  std::array<ErfPoint, kErfStepsOfOne * kErfLast + 1> points{};
  for (size_t i = 0; i < points.size(); ++i) points[i] = at(static_cast<long double>(i) / kErfStepsOfOne);
  return points;
}
}  // namespace erf_table

alignas(64) inline constexpr auto kErfPoints = erf_table::all();

}  // namespace plimsoll::kernels
