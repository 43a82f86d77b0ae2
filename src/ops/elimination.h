// Elimination with row exchanges, of square matrices of doubles, row by row. The matrix is used up.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace plimsoll {

// The row from k on whose element in column k is the largest.
inline int64_t pivot_row(const double* m, int64_t n, int64_t k) {
  int64_t pivot = k;
  for (int64_t r = k + 1; r < n; ++r) {
    if (std::fabs(m[r * n + k]) > std::fabs(m[pivot * n + k])) pivot = r;
  }
  return pivot;
}

inline void exchange_rows(double* m, int64_t n, int64_t a, int64_t b) {
  std::swap_ranges(m + a * n, m + a * n + n, m + b * n);
}

// row `to` -= factor * row `from`, from column `first` on
inline void subtract_row(double* m, int64_t n, int64_t to, double factor, int64_t from, int64_t first) {
  const double* source = m + from * n;
  double* target = m + to * n;
  for (int64_t i = first; i < n; ++i) target[i] -= factor * source[i];
}

inline double determinant_of(double* m, int64_t n) {
  double result = 1;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t pivot = pivot_row(m, n, k);
    const double top = m[pivot * n + k];
    if (top == 0) return 0;
    if (pivot != k) {
      exchange_rows(m, n, k, pivot);
      result = -result;
    }
    result *= top;
    for (int64_t r = k + 1; r < n; ++r) subtract_row(m, n, r, m[r * n + k] / top, k, k + 1);
  }
  return result;
}

// Writes the inverse to y and returns the determinant; without a value if there is no inverse, and then y
// holds nothing that means anything.
inline std::optional<double> invert(double* m, double* y, int64_t n) {
  std::fill_n(y, n * n, 0.0);
  for (int64_t i = 0; i < n; ++i) y[i * n + i] = 1;
  double result = 1;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t pivot = pivot_row(m, n, k);
    const double top = m[pivot * n + k];
    if (top == 0) return std::nullopt;
    if (pivot != k) {
      exchange_rows(m, n, k, pivot);
      exchange_rows(y, n, k, pivot);
      result = -result;
    }
    result *= top;
    for (int64_t i = 0; i < n; ++i) m[k * n + i] /= top, y[k * n + i] /= top;
    for (int64_t r = 0; r < n; ++r) {
      const double factor = m[r * n + k];
      if (r == k || factor == 0) continue;
      subtract_row(m, n, r, factor, k, k);
      subtract_row(y, n, r, factor, k, 0);
    }
  }
  return result;
}

}  // namespace plimsoll
