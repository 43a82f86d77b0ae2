#include "kernels/reduce.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/normalize.h"
#include "kernels/softmax.h"

namespace plimsoll {
namespace {

using kernels::ReduceKind;

std::vector<float> noise(size_t count, float scale = 1) {
  std::vector<float> x;
  uint32_t state = 12345;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    x.push_back((static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1) * scale);
  }
  return x;
}

double fold(ReduceKind kind, const float* x, size_t count, size_t stride) {
  double sum = double{kernels::reduce_identity(kind)};
  for (size_t i = 0; i < count; ++i) {
    const double v = double{x[i * stride]};
    switch (kind) {
      case ReduceKind::kSum:
        sum += v;
        break;
      case ReduceKind::kSumSquare:
        sum += v * v;
        break;
      case ReduceKind::kSumAbs:
        sum += std::fabs(v);
        break;
      case ReduceKind::kMax:
        sum = std::max(sum, v);
        break;
      case ReduceKind::kMin:
        sum = std::min(sum, v);
        break;
      case ReduceKind::kProduct:
        sum *= v;
        break;
    }
  }
  return sum;
}

constexpr ReduceKind kKinds[] = {ReduceKind::kSum, ReduceKind::kSumSquare, ReduceKind::kSumAbs,
                                 ReduceKind::kMax, ReduceKind::kMin,       ReduceKind::kProduct};

TEST(Reduce, RowsAndColumnsOfEverySize) {
  for_each_target([] {
    for (ReduceKind kind : kKinds) {
      for (size_t rows : {1u, 3u, 130u}) {
        for (size_t cols : {1u, 7u, 64u, 75u, 201u}) {
          const std::vector<float> x = noise(rows * cols, 1.3f);
          std::vector<float> y(rows), z(cols + 1, 77.0f);
          kernels::reduce_rows_f32(kind, x.data(), static_cast<int64_t>(rows), static_cast<int64_t>(cols),
                                   y.data());
          kernels::reduce_columns_f32(kind, x.data(), static_cast<int64_t>(rows), static_cast<int64_t>(cols),
                                      static_cast<int64_t>(cols), z.data());
          for (size_t r = 0; r < rows; ++r) EXPECT_NEAR(y[r], fold(kind, &x[r * cols], cols, 1), 4e-5);
          for (size_t c = 0; c < cols; ++c) EXPECT_NEAR(z[c], fold(kind, &x[c], rows, cols), 4e-5);
          EXPECT_EQ(z[cols], 77.0f);
        }
      }
    }
  });
}

TEST(Reduce, LongSumsStayAccurate) {
  for_each_target([] {
    const std::vector<float> x(1 << 22, 0.1f);
    float row = 0;
    kernels::reduce_rows_f32(ReduceKind::kSum, x.data(), 1, static_cast<int64_t>(x.size()), &row);
    EXPECT_NEAR(row / (0.1 * (1 << 22)), 1, 1e-6);
    std::vector<float> columns(4);
    kernels::reduce_columns_f32(ReduceKind::kSum, x.data(), 12544, 4, 4, columns.data());
    EXPECT_NEAR(columns[3] / (0.1 * 12544), 1, 2e-6);
  });
}

TEST(Reduce, NanWins) {
  for_each_target([] {
    for (ReduceKind kind : {ReduceKind::kMax, ReduceKind::kMin}) {
      for (size_t at = 0; at < 40; at += 3) {
        std::vector<float> x(40, 1.0f);
        x[at] = std::numeric_limits<float>::quiet_NaN();
        float y = 0;
        kernels::reduce_rows_f32(kind, x.data(), 1, 40, &y);
        EXPECT_TRUE(std::isnan(y)) << at;
      }
    }
  });
}

TEST(Softmax, RowsAndColumnsOfEverySize) {
  for_each_target([] {
    for (size_t rows : {1u, 5u}) {
      for (size_t cols : {1u, 3u, 16u, 77u, 1000u}) {
        const std::vector<float> x = noise(rows * cols, 30);
        for (bool logarithm : {false, true}) {
          std::vector<float> y(x.size()), z(x.size());
          const auto r64 = static_cast<int64_t>(rows), c64 = static_cast<int64_t>(cols);
          kernels::softmax_rows_f32(logarithm, x.data(), y.data(), r64, c64);
          std::vector<float> transposed(x.size());
          for (size_t r = 0; r < rows; ++r)
            for (size_t c = 0; c < cols; ++c) transposed[c * rows + r] = x[r * cols + c];
          kernels::softmax_columns_f32(logarithm, transposed.data(), z.data(), c64, r64, r64);
          for (size_t r = 0; r < rows; ++r) {
            double sum = 0;
            for (size_t c = 0; c < cols; ++c) sum += std::exp(double{x[r * cols + c]});
            for (size_t c = 0; c < cols; ++c) {
              const double p = double{x[r * cols + c]} - std::log(sum);
              const double expected = logarithm ? p : std::exp(p);
              EXPECT_NEAR(y[r * cols + c], expected, 1e-6 * std::max(1.0, std::fabs(expected)));
              EXPECT_NEAR(z[c * rows + r], expected, 1e-6 * std::max(1.0, std::fabs(expected)));
            }
          }
        }
      }
    }
  });
}

TEST(Softmax, MaskedElementsAreZero) {
  for_each_target([] {
    std::vector<float> x(21, 1.0f);
    for (size_t i = 10; i < 21; ++i) x[i] = -std::numeric_limits<float>::infinity();
    kernels::softmax_rows_f32(false, x.data(), x.data(), 1, 21);
    EXPECT_NEAR(x[0], 0.1f, 1e-7);
    EXPECT_EQ(x[20], 0);
  });
}

TEST(LayerNorm, NormalizesInPlace) {
  for_each_target([] {
    for (size_t cols : {1u, 5u, 48u, 768u, 771u}) {
      std::vector<float> x = noise(2 * cols, 3);
      for (float& v : x) v += 50;  // a mean far from 0
      const std::vector<float> original = x, scale = noise(cols), bias(cols, 0.5f);
      float mean[2], inverse[2];
      kernels::layer_norm_f32(x.data(), scale.data(), bias.data(), x.data(), 2, static_cast<int64_t>(cols),
                              1e-5f, mean, inverse);
      for (size_t r = 0; r < 2; ++r) {
        double m = 0, v = 0;
        for (size_t c = 0; c < cols; ++c) m += double{original[r * cols + c]} / static_cast<double>(cols);
        for (size_t c = 0; c < cols; ++c)
          v += std::pow(double{original[r * cols + c]} - m, 2) / static_cast<double>(cols);
        EXPECT_NEAR(mean[r], m, 1e-5);
        for (size_t c = 0; c < cols; ++c)
          EXPECT_NEAR(x[r * cols + c],
                      (double{original[r * cols + c]} - m) / std::sqrt(v + 1e-5) * double{scale[c]} + 0.5,
                      2e-3);
      }
    }
  });
}

}  // namespace
}  // namespace plimsoll
