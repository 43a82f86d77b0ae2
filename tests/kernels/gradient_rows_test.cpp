// Gradients of softmax, of normalization along rows and of functions of one number, in every float type,
// against their definitions in double.
#include "kernels/float_types.h"
#include "kernels/norm_gradient.h"
#include "kernels/softmax_gradient.h"
#include "kernels/unary_gradient.h"

namespace plimsoll::kernels {
namespace {

template <typename T>
class GradientRows : public testing::Test {};
TYPED_TEST_SUITE(GradientRows, FloatTypes);

// `rows` elements of a row or a column, `step` apart.
template <typename T>
void expect_softmax_gradient(bool logarithm, const T* y, const T* dy, const T* dx, int64_t count,
                             int64_t step) {
  double sum = 0, size = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double term = wide(dy[i * step]) * (logarithm ? 1 : wide(y[i * step]));
    sum += term, size += std::fabs(term);
  }
  for (int64_t i = 0; i < count; ++i) {
    const double p = wide(y[i * step]), g = wide(dy[i * step]);
    const double exact = logarithm ? g - std::exp(p) * sum : p * (g - sum);
    const double terms = std::fabs(g) + (logarithm ? std::exp(p) : 1) * size;
    ASSERT_NEAR(wide(dx[i * step]), exact, allowed<T>(exact, terms)) << i << " of " << count;
  }
}

TYPED_TEST(GradientRows, OfSoftmax) {
  using T = TypeParam;
  for_each_target([] {
    Dice dice(1);
    for (int round = 0; round < 60; ++round) {
      const bool logarithm = dice.one_of(2);
      const int64_t rows = dice.pick(1, 9), cols = dice.length();
      const auto y = dice.values<T>(rows * cols, logarithm ? -8 : 0, logarithm ? 0 : 1);
      const auto dy = dice.values<T>(rows * cols);
      const int64_t place = dice.pick(0, 2);  // the result is apart, y or dy
      const Array<T> of_y(y), of_dy(dy), apart(rows * cols);
      T* dx = (place == 0 ? apart : place == 1 ? of_y : of_dy).data();
      softmax_gradient_rows(logarithm, of_y.data(), of_dy.data(), dx, rows, cols);
      for (int64_t row = 0; row < rows; ++row)
        expect_softmax_gradient(logarithm, &y[static_cast<size_t>(row * cols)],
                                &dy[static_cast<size_t>(row * cols)], dx + row * cols, cols, 1);
    }
  });
}

TYPED_TEST(GradientRows, OfSoftmaxAlongColumns) {
  using T = TypeParam;
  for_each_target([] {
    Dice dice(2);
    for (int round = 0; round < 60; ++round) {
      const bool logarithm = dice.one_of(2);
      const int64_t rows = dice.pick(1, 40), cols = dice.length(), stride = cols + dice.pick(0, 5);
      const int64_t count = (rows - 1) * stride + cols;
      const auto y = dice.values<T>(count, logarithm ? -8 : 0, logarithm ? 0 : 1);
      const auto dy = dice.values<T>(count), before = dice.values<T>(count);
      const Array<T> of_y(y), of_dy(dy), dx(before);
      softmax_gradient_columns(logarithm, of_y.data(), of_dy.data(), dx.data(), rows, cols, stride);
      for (int64_t c = 0; c < cols; ++c)
        expect_softmax_gradient(logarithm, y.data() + c, dy.data() + c, dx.data() + c, rows, stride);
      for (int64_t i = 0; i < count; ++i) {
        if (i % stride >= cols) {
          ASSERT_EQ(dx.at(i), wide(before[static_cast<size_t>(i)])) << "between rows";
        }
      }
    }
  });
}

// ---- normalization ------------------------------------------------------------------------------------

template <typename T>
struct NormCase {
  int64_t rows, cols;
  bool centered;
  double epsilon;
  std::vector<T> x, dy, scale;
  double factor(int64_t c) const { return scale.empty() ? 1 : wide(scale[static_cast<size_t>(c)]); }
};

// What a row is normalized by, and how large the numbers are that its elements are differences of.
struct Row {
  double mean = 0, inverse = 0, largest = 0;
  double normal(double x) const { return (x - mean) * inverse; }
  double size(double x) const { return std::fabs(normal(x)) + inverse * largest; }
};

template <typename T>
Row row_of(const NormCase<T>& p, const T* x) {
  Row row;
  const auto n = static_cast<double>(p.cols);
  for (int64_t c = 0; c < p.cols; ++c) {
    row.largest = std::max(row.largest, std::fabs(wide(x[c])));
    if (p.centered) row.mean += wide(x[c]) / n;
  }
  double squares = 0;
  for (int64_t c = 0; c < p.cols; ++c) squares += std::pow(wide(x[c]) - row.mean, 2) / n;
  row.inverse = 1 / std::sqrt(squares + p.epsilon);
  return row;
}

template <typename T>
void expect_norm_row(const NormCase<T>& p, const T* x, const T* dy, const T* dx) {
  const Row row = row_of(p, x);
  const auto n = static_cast<double>(p.cols);
  double mean = 0, mean_size = 0, along = 0, along_size = 0;
  for (int64_t c = 0; c < p.cols; ++c) {
    const double g = wide(dy[c]) * p.factor(c);
    mean += g / n, mean_size += std::fabs(g) / n;
    along += g * row.normal(wide(x[c])) / n, along_size += std::fabs(g) * row.size(wide(x[c])) / n;
  }
  if (!p.centered) mean = 0;
  for (int64_t c = 0; c < p.cols; ++c) {
    const double g = wide(dy[c]) * p.factor(c);
    const double exact = row.inverse * (g - mean - row.normal(wide(x[c])) * along);
    const double size = row.inverse * (std::fabs(g) + mean_size + row.size(wide(x[c])) * along_size);
    ASSERT_NEAR(wide(dx[c]), exact, allowed<T>(exact, size)) << c << " of " << p.cols;
  }
}

// To each column's `found` was added what the rows give it.
template <typename T, typename Term>
void expect_column_sums(const NormCase<T>& p, const std::vector<LaneOf<T>>& before,
                        const Array<LaneOf<T>>& found, Term term) {
  for (int64_t c = 0; c < p.cols; ++c) {
    double exact = wide(before[static_cast<size_t>(c)]), size = std::fabs(exact);
    for (int64_t r = 0; r < p.rows; ++r) {
      const auto at = static_cast<size_t>(r * p.cols + c);
      const auto [value, bound] = term(row_of(p, &p.x[static_cast<size_t>(r * p.cols)]), wide(p.x[at]));
      exact += wide(p.dy[at]) * value, size += std::fabs(wide(p.dy[at])) * bound;
    }
    ASSERT_NEAR(found.at(c), exact, allowed<LaneOf<T>>(exact, size)) << c << " of " << p.cols;
  }
}

TYPED_TEST(GradientRows, OfNormalization) {
  using T = TypeParam;
  using W = LaneOf<T>;
  for_each_target([] {
    Dice dice(3);
    for (int round = 0; round < 60; ++round) {
      NormCase<T> p;
      p.rows = dice.pick(1, 5), p.cols = dice.length(), p.centered = dice.one_of(2);
      p.epsilon = static_cast<double>(dice.one_of(2) ? 1e-3f : 0.1f);
      const float offset = dice.one_of(2) ? 0 : 3;
      p.x = dice.values<T>(p.rows * p.cols, offset - 1, offset + 1);
      p.dy = dice.values<T>(p.rows * p.cols);
      if (dice.one_of(2)) p.scale = dice.values<T>(p.cols, 0.5f, 2);
      const auto dscale = dice.values<W>(p.cols), dbias = dice.values<W>(p.cols);
      const bool parameters = !dice.one_of(3), place = dice.one_of(2);
      const Array<T> x(p.x), dy(p.dy), scale(p.scale), apart(p.rows * p.cols);
      const Array<W> of_scale(dscale), of_bias(dbias);
      T* dx = place ? dy.data() : apart.data();
      RowNormGradient<T> job{x.data(), dy.data(), p.scale.empty() ? nullptr : scale.data(), dx};
      if (parameters) job.dscale = of_scale.data(), job.dbias = of_bias.data();
      job.rows = p.rows, job.cols = p.cols, job.centered = p.centered;
      job.epsilon = static_cast<float>(p.epsilon);
      row_norm_gradient(job);
      for (int64_t r = 0; r < p.rows; ++r)
        expect_norm_row(p, &p.x[static_cast<size_t>(r * p.cols)], &p.dy[static_cast<size_t>(r * p.cols)],
                        dx + r * p.cols);
      if (!parameters) continue;
      expect_column_sums(p, dscale, of_scale,
                         [](const Row& row, double v) { return std::pair(row.normal(v), row.size(v)); });
      expect_column_sums(p, dbias, of_bias, [](const Row&, double) { return std::pair(1.0, 1.0); });
    }
  });
}

// ---- functions of one number --------------------------------------------------------------------------

double slope(const Unary& f, double v) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const double k = std::sqrt(2 / M_PI), c = 0.044715, t = std::tanh(k * (v + c * v * v * v));
  switch (f.kind) {
    case UnaryKind::kErf:
      return 2 / std::sqrt(M_PI) * std::exp(-v * v);
    case UnaryKind::kGelu:
      return 0.5 * std::erfc(-v / std::sqrt(2.0)) + v * std::exp(-v * v / 2) / std::sqrt(2 * M_PI);
    case UnaryKind::kGeluTanh:
      return 0.5 * (1 + t + v * (1 - t * t) * k * (1 + 3 * c * v * v));
    case UnaryKind::kHardSwish:
      return v <= -3 ? 0 : v > 3 ? 1 : v / 3 + 0.5;
    case UnaryKind::kSwish:
      return sigmoid(double{f.a} * v) * (1 + double{f.a} * v * (1 - sigmoid(double{f.a} * v)));
    case UnaryKind::kSigmoid:
      return v * (1 - v);
    default:  // kTanh
      return 1 - v * v;
  }
}

TYPED_TEST(GradientRows, OfFunctionsOfOneNumber) {
  using T = TypeParam;
  constexpr UnaryKind kKinds[] = {UnaryKind::kErf,       UnaryKind::kGelu,  UnaryKind::kGeluTanh,
                                  UnaryKind::kHardSwish, UnaryKind::kSwish, UnaryKind::kSigmoid,
                                  UnaryKind::kTanh};
  for_each_target([&] {
    Dice dice(4);
    for (int round = 0; round < 140; ++round) {
      const Unary f{kKinds[round % 7], dice.real(0.5f, 2)};
      const bool of_result = f.kind == UnaryKind::kSigmoid || f.kind == UnaryKind::kTanh;
      const int64_t count = dice.length(), place = dice.pick(0, 2);
      const auto v = dice.values<T>(count, of_result ? -1 : -6, of_result ? 1 : 6),
                 dy = dice.values<T>(count);
      const Array<T> of_v(v), of_dy(dy), apart(count);
      T* dx = (place == 0 ? apart : place == 1 ? of_v : of_dy).data();
      unary_gradient(f, of_v.data(), of_dy.data(), dx, count);
      for (int64_t i = 0; i < count; ++i) {
        const double x = wide(v[static_cast<size_t>(i)]), g = wide(dy[static_cast<size_t>(i)]);
        const double exact = g * slope(f, x);
        ASSERT_NEAR(wide(dx[i]), exact, allowed<T>(exact, std::fabs(g) * (1 + std::fabs(x))))
            << "function " << static_cast<int>(f.kind) << " at " << x << ", " << i << " of " << count;
      }
    }
  });
}

}  // namespace
}  // namespace plimsoll::kernels
