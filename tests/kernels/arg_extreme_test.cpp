#include "kernels/arg_extreme.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/each_target.h"

namespace plimsoll {
namespace {

// By the definition: a NaN is beyond all others.
int64_t expected_place(const kernels::ArgExtreme& f, const float* x, int64_t count, int64_t stride) {
  int64_t best = 0;
  for (int64_t i = 1; i < count; ++i) {
    const float v = x[i * stride], b = x[best * stride];
    const bool same = v == b || (std::isnan(v) && std::isnan(b));
    const bool further = std::isnan(v) ? !std::isnan(b) : !std::isnan(b) && (f.largest ? v > b : v < b);
    if (further || (same && f.last)) best = i;
  }
  return best;
}

std::vector<float> few_values(size_t count, uint32_t state, bool with_nan) {
  std::vector<float> x;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    x.push_back(static_cast<float>(static_cast<int>(state >> 24) % 7 - 3));
    if (with_nan && state >> 26 == 5) x.back() = std::numeric_limits<float>::quiet_NaN();
  }
  return x;
}

template <class T>
void expect_places() {
  for_each_target([] {
    for (int variant = 0; variant < 8; ++variant) {
      const kernels::ArgExtreme f{(variant & 1) != 0, (variant & 2) != 0};
      for (int64_t rows = 1; rows < 40; rows += 3) {
        for (int64_t cols : {1, 2, 7, 8, 16, 17, 33, 70}) {
          const std::vector<float> x = few_values(
              static_cast<size_t>(rows * cols), static_cast<uint32_t>(rows * 100 + cols), (variant & 4) != 0);
          std::vector<T> stored;
          for (float v : x) stored.push_back(T(v));  // exact in every type
          std::vector<int64_t> by_row(static_cast<size_t>(rows)), by_column(static_cast<size_t>(cols));
          kernels::arg_rows(f, stored.data(), rows, cols, by_row.data());
          kernels::arg_columns(f, stored.data(), rows, cols, cols, by_column.data());
          for (int64_t r = 0; r < rows; ++r)
            ASSERT_EQ(by_row[static_cast<size_t>(r)], expected_place(f, x.data() + r * cols, cols, 1));
          for (int64_t c = 0; c < cols; ++c)
            ASSERT_EQ(by_column[static_cast<size_t>(c)], expected_place(f, x.data() + c, rows, cols));
        }
      }
    }
  });
}

TEST(ArgExtreme, FindsTheFirstOrTheLast) {
  expect_places<float>();
  expect_places<double>();
  expect_places<Float16>();
  expect_places<BFloat16>();
}

}  // namespace
}  // namespace plimsoll
