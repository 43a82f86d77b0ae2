// What goes over rows of random lengths, against its definition in double: scores, linear models, and
// normalization and reductions of doubles.
#include <limits>

#include "kernels/float_types.h"
#include "kernels/inner_products.h"
#include "kernels/normalize.h"
#include "kernels/reduce.h"
#include "kernels/score_rows.h"
#include "kernels/softmax.h"

namespace plimsoll::kernels {
namespace {

TEST(ScoreRows, RandomRowsWithMasks) {
  for_each_target([] {
    Dice dice(1);
    for (int round = 0; round < 60; ++round) {
      const int64_t rows = dice.pick(1, 9), cols = dice.length(), stride = cols + dice.pick(0, 5);
      const int64_t mask_stride = dice.one_of(2) ? 0 : cols + dice.pick(0, 5);
      const bool masked = dice.one_of(2);
      auto mask = dice.values<float>((rows - 1) * mask_stride + cols, -3, 3);
      for (float& m : mask)
        if (dice.one_of(9)) m = -std::numeric_limits<float>::infinity();
      for (int64_t r = 0; r < rows; ++r) mask[static_cast<size_t>(r * mask_stride)] = 0;  // one is to be seen
      const auto scores = dice.values<float>((rows - 1) * stride + cols, -9, 9);
      const Array<float> y(scores), of_mask(mask), factors(rows);
      score_rows_f32(y.data(), rows, cols, stride, masked ? of_mask.data() : nullptr, mask_stride,
                     factors.data());
      for (int64_t r = 0; r < rows; ++r) {
        std::vector<double> exact;
        for (int64_t c = 0; c < cols; ++c)
          exact.push_back(wide(scores[static_cast<size_t>(r * stride + c)]) +
                          (masked ? wide(mask[static_cast<size_t>(r * mask_stride + c)]) : 0));
        const double largest = *std::max_element(exact.begin(), exact.end());
        double sum = 0;
        for (double& v : exact) v = std::exp(v - largest), sum += v;
        for (int64_t c = 0; c < cols; ++c) {
          const double e = exact[static_cast<size_t>(c)];
          ASSERT_NEAR(y.at(r * stride + c), e, allowed<float>(e, 12 * e + 1e-30)) << c << " of " << cols;
        }
        ASSERT_NEAR(factors.at(r), 1 / sum, allowed<float>(0, 12 / sum));
      }
      for (int64_t i = 0; i < y.size(); ++i)
        if (i % stride >= cols) {
          ASSERT_EQ(y[i], scores[static_cast<size_t>(i)]) << "between rows";
        }
    }
  });
}

TEST(ScaleRows, RandomRows) {
  for_each_target([] {
    Dice dice(2);
    for (int round = 0; round < 60; ++round) {
      const int64_t rows = dice.pick(1, 9), cols = dice.length(), stride = cols + dice.pick(0, 5);
      const auto x = dice.values<float>((rows - 1) * stride + cols);
      const Array<float> y(x), factors(dice.values<float>(rows));
      scale_rows_f32(y.data(), rows, cols, stride, factors.data());
      for (int64_t i = 0; i < y.size(); ++i) {
        const float before = x[static_cast<size_t>(i)];
        ASSERT_EQ(y[i], i % stride < cols ? before * factors[i / stride] : before) << i << " of " << cols;
      }
    }
  });
}

TEST(InnerProducts, RandomRowsAndTargets) {
  for_each_target([] {
    Dice dice(3);
    for (int round = 0; round < 60; ++round) {
      const int64_t rows = dice.pick(0, 5), targets = dice.pick(1, 7), features = dice.length();
      const Array<float> x(dice.values<float>(rows * features)), w(dice.values<float>(targets * features));
      const Array<float> bias(dice.values<float>(targets)), products(rows * targets),
          distances(rows * targets);
      const bool biased = dice.one_of(2);
      inner_products_f32(x.data(), rows, w.data(), targets, features, biased ? bias.data() : nullptr,
                         products.data());
      squared_distances_f32(x.data(), rows, w.data(), targets, features, distances.data());
      for (int64_t i = 0; i < rows * targets; ++i) {
        double product = biased ? bias.at(i % targets) : 0, size = std::fabs(product), distance = 0;
        for (int64_t f = 0; f < features; ++f) {
          const double a = x.at(i / targets * features + f), b = w.at(i % targets * features + f);
          product += a * b, size += std::fabs(a * b), distance += (a - b) * (a - b);
        }
        ASSERT_NEAR(products.at(i), product, allowed<float>(product, size)) << features << " features";
        ASSERT_NEAR(distances.at(i), distance, allowed<float>(distance, distance)) << features << " features";
      }
    }
  });
}

// ---- doubles, whose floats are in reduce_test.cpp ------------------------------------------------------

TEST(Doubles, ReducedAlongRowsAndColumns) {
  constexpr ReduceKind kKinds[] = {ReduceKind::kSum, ReduceKind::kSumSquare, ReduceKind::kSumAbs,
                                   ReduceKind::kMax, ReduceKind::kMin,       ReduceKind::kProduct};
  for_each_target([&] {
    Dice dice(4);
    for (int round = 0; round < 120; ++round) {
      const ReduceKind kind = kKinds[round % 6];
      const int64_t rows = dice.length(), cols = dice.length(), stride = cols + dice.pick(0, 5);
      const Array<double> x(dice.values<double>((rows - 1) * stride + cols, -1.3f, 1.3f));
      const Array<double> dense(dice.values<double>(rows * cols, -1.3f, 1.3f)), by_row(rows), by_column(cols);
      reduce_rows_f64(kind, dense.data(), rows, cols, by_row.data());
      reduce_columns_f64(kind, x.data(), rows, cols, stride, by_column.data());
      const auto expect = [&](double found, const double* from, int64_t count, int64_t step) {
        double exact = double{reduce_identity(kind)}, size = 1;
        for (int64_t i = 0; i < count; ++i) {
          const double v = from[i * step];
          size += std::fabs(v) + v * v;
          if (kind == ReduceKind::kSum) exact += v;
          if (kind == ReduceKind::kSumSquare) exact += v * v;
          if (kind == ReduceKind::kSumAbs) exact += std::fabs(v);
          if (kind == ReduceKind::kMax) exact = std::max(exact, v);
          if (kind == ReduceKind::kMin) exact = std::min(exact, v);
          if (kind == ReduceKind::kProduct) exact *= v;
        }
        ASSERT_NEAR(found, exact, allowed<double>(exact, size))
            << count << " of kind " << static_cast<int>(kind);
      };
      for (int64_t r = 0; r < rows; ++r) expect(by_row[r], dense.data() + r * cols, cols, 1);
      for (int64_t c = 0; c < cols; ++c) expect(by_column[c], x.data() + c, rows, stride);
    }
  });
}

TEST(Doubles, SoftmaxOfRowsAndColumns) {
  for_each_target([] {
    Dice dice(5);
    for (int round = 0; round < 60; ++round) {
      const bool logarithm = dice.one_of(2), along_rows = dice.one_of(2);
      const int64_t rows = dice.pick(1, 9), cols = dice.length();
      const int64_t count = along_rows ? rows : cols, length = along_rows ? cols : rows;
      const int64_t stride = along_rows ? cols : cols + dice.pick(0, 5);
      const auto x = dice.values<double>((rows - 1) * stride + cols, -20, 20);
      const Array<double> in(x), apart(x);
      const Array<double>& y = dice.one_of(2) ? in : apart;
      along_rows ? softmax_rows_f64(logarithm, in.data(), y.data(), rows, cols)
                 : softmax_columns_f64(logarithm, in.data(), y.data(), rows, cols, stride);
      for (int64_t i = 0; i < count; ++i) {
        const auto at = [&](int64_t k) { return along_rows ? i * cols + k : k * stride + i; };
        double largest = -1e9, sum = 0;
        for (int64_t k = 0; k < length; ++k) largest = std::max(largest, x[static_cast<size_t>(at(k))]);
        for (int64_t k = 0; k < length; ++k) sum += std::exp(x[static_cast<size_t>(at(k))] - largest);
        for (int64_t k = 0; k < length; ++k) {
          const double p = x[static_cast<size_t>(at(k))] - largest - std::log(sum);
          const double exact = logarithm ? p : std::exp(p);
          ASSERT_NEAR(y.at(at(k)), exact, allowed<double>(exact, 4 + std::fabs(exact)))
              << k << " of " << length;
        }
      }
    }
  });
}

// Lengths around every number of vectors, in place and not; among them what is not seen.
TEST(Softmax, ShortRowsOfFloats) {
  for_each_target([] {
    Dice dice(6);
    for (int64_t cols = 1; cols <= 70; ++cols) {
      const int64_t rows = dice.pick(1, 5);
      auto x = dice.values<float>(rows * cols, -20, 20);
      for (int64_t i = 0; i < rows * cols; ++i)
        if (i % cols != 0 && dice.one_of(9))
          x[static_cast<size_t>(i)] =
              dice.one_of(2) ? -std::numeric_limits<float>::infinity() : dice.real(-1e9f, -60);
      const Array<float> in(x), apart(x);
      const Array<float>& y = dice.one_of(2) ? in : apart;
      const bool logarithm = dice.one_of(2);
      softmax_rows_f32(logarithm, in.data(), y.data(), rows, cols);
      for (int64_t r = 0; r < rows; ++r) {
        const float* row = x.data() + r * cols;
        const double largest = double{*std::max_element(row, row + cols)};
        double sum = 0;
        for (int64_t k = 0; k < cols; ++k) sum += std::exp(double{row[k]} - largest);
        for (int64_t k = 0; k < cols; ++k) {
          const double share = double{row[k]} - largest - std::log(sum);
          const double exact = logarithm ? share : std::exp(share);
          if (std::isinf(exact)) {
            ASSERT_EQ(y.at(r * cols + k), exact);
            continue;
          }
          ASSERT_NEAR(y.at(r * cols + k), exact,
                      allowed<float>(exact, 8 * (logarithm ? 1 + std::fabs(exact) : exact) + 1e-30))
              << k << " of " << cols;
        }
      }
    }
  });
}

// x = offset + noise: of the type's digits the mean takes some.
template <typename T, typename Norm>
void expect_layer_norm(Dice& dice, Norm norm) {
  const int64_t rows = dice.pick(1, 5), cols = dice.length();
  const float offset = dice.one_of(2) ? 0 : 3;
  const auto x = dice.values<T>(rows * cols, offset - 1, offset + 1);
  const Array<T> in(x), apart(x), scale(dice.values<T>(cols)), bias(dice.values<T>(cols));
  const Array<T>& y = dice.one_of(2) ? in : apart;
  const Array<float> mean(rows), inverse(rows);
  const bool biased = dice.one_of(2), moments = dice.one_of(2);
  norm(in.data(), scale.data(), biased ? bias.data() : nullptr, y.data(), rows, cols, 1e-3f,
       moments ? mean.data() : nullptr, moments ? inverse.data() : nullptr);
  for (int64_t r = 0; r < rows; ++r) {
    double m = 0, v = 0;
    for (int64_t c = 0; c < cols; ++c)
      m += wide(x[static_cast<size_t>(r * cols + c)]) / static_cast<double>(cols);
    for (int64_t c = 0; c < cols; ++c)
      v += std::pow(wide(x[static_cast<size_t>(r * cols + c)]) - m, 2) / static_cast<double>(cols);
    const double by = 1 / std::sqrt(v + double{1e-3f});
    if (moments) {
      ASSERT_NEAR(mean.at(r), m, allowed<float>(m, 4));
      ASSERT_NEAR(inverse.at(r), by, allowed<float>(by, by * (1 + by)));
    }
    for (int64_t c = 0; c < cols; ++c) {
      const double normal = (wide(x[static_cast<size_t>(r * cols + c)]) - m) * by;
      const double exact = normal * scale.at(c) + (biased ? bias.at(c) : 0);
      ASSERT_NEAR(y.at(r * cols + c), exact, allowed<T>(exact, 1 + std::fabs(normal) * by + 4 * by))
          << c << " of " << cols;
    }
  }
}

TEST(LayerNorm, RandomRowsOfBothTypes) {
  for_each_target([] {
    Dice dice(6);
    for (int round = 0; round < 50 && !testing::Test::HasFailure(); ++round) {
      expect_layer_norm<float>(dice, layer_norm_f32);
      expect_layer_norm<double>(dice, layer_norm_f64);
    }
  });
}

TEST(MomentsAndAffine, RandomRowsOfBothTypes) {
  for_each_target([] {
    Dice dice(7);
    for (int round = 0; round < 60; ++round) {
      const int64_t count = dice.length();
      const float a = dice.real(-2, 2), b = dice.real(-2, 2);
      const Array<float> x(dice.values<float>(count, 1, 3)), y(count);
      const Array<double> z(std::vector<double>(x.data(), x.data() + count)), w(count);
      const Moments of_x = moments_f32(x.data(), count);
      const WideMoments of_z = moments_f64(z.data(), count);
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < count; ++i) mean += z[i] / static_cast<double>(count);
      for (int64_t i = 0; i < count; ++i)
        variance += (z[i] - mean) * (z[i] - mean) / static_cast<double>(count);
      ASSERT_NEAR(wide(of_x.mean), mean, allowed<float>(mean, 3));
      ASSERT_NEAR(wide(of_x.variance), variance, allowed<float>(variance, 3));
      ASSERT_NEAR(of_z.mean, mean, allowed<double>(mean, 3));
      ASSERT_NEAR(of_z.variance, variance, allowed<double>(variance, 3));
      affine_f32(x.data(), y.data(), count, a, b);
      affine_f64(z.data(), w.data(), count, double{a}, double{b});
      for (int64_t i = 0; i < count; ++i) {
        const double exact = z[i] * double{a} + double{b};
        ASSERT_NEAR(y.at(i), exact, allowed<float>(exact, 8)) << i << " of " << count;
        ASSERT_NEAR(w[i], exact, allowed<double>(exact, 8)) << i << " of " << count;
      }
    }
  });
}

}  // namespace
}  // namespace plimsoll::kernels
