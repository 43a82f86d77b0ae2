#include "kernels/binary.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/each_target.h"

namespace plimsoll {
namespace {

using kernels::BinaryKind;
using Dims = std::vector<int64_t>;

int64_t count(const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

// The operand's element for element `i` of the output.
int64_t source(const Dims& out, const Dims& dims, int64_t i) {
  int64_t offset = 0, stride = 1;
  for (size_t k = 0; k < out.size(); ++k) {
    const int64_t index = i % out[out.size() - 1 - k];
    i /= out[out.size() - 1 - k];
    if (k >= dims.size()) continue;
    const int64_t dim = dims[dims.size() - 1 - k];
    if (dim != 1) offset += index * stride;
    stride *= dim;
  }
  return offset;
}

void check(const Dims& out, const Dims& da, const Dims& db, int threads) {
  std::vector<float> a, b, y(static_cast<size_t>(count(out)), -1);
  for (int64_t i = 0; i < count(da); ++i) a.push_back(static_cast<float>(i % 1013));
  for (int64_t i = 0; i < count(db); ++i) b.push_back(static_cast<float>(i % 509) + 0.5f);
  kernels::Broadcast(out, {da, db}).for_each(threads, [&](const kernels::BroadcastBlock& block) {
    kernels::binary(BinaryKind::kSub, block, a.data(), b.data(), y.data());
  });
  for (int64_t i = 0; i < count(out); ++i) {
    const float expected =
        a[static_cast<size_t>(source(out, da, i))] - b[static_cast<size_t>(source(out, db, i))];
    ASSERT_EQ(y[static_cast<size_t>(i)], expected) << "element " << i;
  }
}

TEST(Binary, BroadcastsEveryPattern) {
  for_each_target([] {
    for (int threads : {1, 2}) {
      check({}, {}, {}, threads);
      check({3, 0, 2}, {3, 0, 2}, {2}, threads);
      check({2, 3, 37}, {2, 3, 37}, {2, 3, 37}, threads);
      check({2, 3, 37}, {2, 3, 37}, {}, threads);
      check({2, 3, 37}, {1}, {2, 3, 37}, threads);
      check({5, 4, 19}, {5, 4, 19}, {19}, threads);                 // a bias over the last axis
      check({5, 4, 19}, {5, 4, 1}, {5, 4, 19}, threads);            // a number per row
      check({2, 6, 5, 33}, {2, 6, 5, 33}, {2, 1, 1, 33}, threads);  // squeeze and excite
      check({2, 8, 9, 7}, {2, 8, 9, 7}, {8, 1, 1}, threads);        // a bias over channels
      check({31, 65}, {31, 1}, {1, 65}, threads);                   // outer
      check({2, 3, 4, 5, 6}, {2, 1, 4, 1, 6}, {3, 1, 5, 1}, threads);
      check({2, 3, 40000}, {2, 3, 40000}, {3, 1}, threads);
      check({9000, 7}, {9000, 7}, {7}, threads);
      check({4, 5}, {1}, {1, 1}, threads);  // neither fills the output
    }
  });
}

TEST(Binary, NanWinsInMinAndMax) {
  for_each_target([] {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> a = {nan, 1, 2}, b = {1, nan, 3};
    for (BinaryKind kind : {BinaryKind::kMin, BinaryKind::kMax}) {
      std::vector<float> y(3);
      const Dims dims = {3};
      kernels::Broadcast(dims, {dims, dims}).for_each(1, [&](const kernels::BroadcastBlock& block) {
        kernels::binary(kind, block, a.data(), b.data(), y.data());
      });
      EXPECT_TRUE(std::isnan(y[0]));
      EXPECT_TRUE(std::isnan(y[1]));
      EXPECT_EQ(y[2], kind == BinaryKind::kMin ? 2 : 3);
    }
  });
}

TEST(Binary, AGateIsOpenAboveZeroAlone) {
  for_each_target([] {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> a, b, expected;
    for (int i = 0; i < 37; ++i) {
      a.push_back(i % 5 == 0 ? nan : static_cast<float>(i % 7 - 3));
      b.push_back(i % 4 == 0 ? nan : static_cast<float>(i + 1));
      expected.push_back(a.back() > 0 ? b.back() : 0);
    }
    const Dims dims = {37};
    kernels::Broadcast(dims, {dims, dims}).for_each(1, [&](const kernels::BroadcastBlock& block) {
      kernels::binary(BinaryKind::kGate, block, a.data(), b.data(), b.data());  // in place
    });
    for (size_t i = 0; i < b.size(); ++i)
      EXPECT_TRUE(b[i] == expected[i] || (std::isnan(b[i]) && std::isnan(expected[i]))) << i;
  });
}

template <typename T>
T power(T x, T y) {
  T result;
  kernels::Broadcast({}, {{}, {}}).for_each(1, [&](const kernels::BroadcastBlock& block) {
    kernels::binary(BinaryKind::kPow, block, &x, &y, &result);
  });
  return result;
}

TEST(Binary, PowersAreCloseToLibm) {
  for_each_target([] {
    double worst = 0;
    for (float x = 1e-38f; x < 1e38f; x *= 1.37f) {
      for (float y = -6; y <= 6; y += 0.173f) {
        const double expected = std::pow(double{x}, double{y});
        if (expected < 1.2e-38 || expected > 3.4e38) continue;
        worst = std::max(worst, std::fabs(double{power(x, y)} - expected) / expected);
      }
    }
    EXPECT_LT(worst, 1.2e-7);
  });
}

// Units in the last place between x^y of doubles and long double's.
double power_error(double x, double y) {
  const long double expected = std::pow(static_cast<long double>(x), static_cast<long double>(y));
  const long double unit =
      std::ldexp(1.0L, std::max(std::ilogb(expected), std::numeric_limits<double>::min_exponent - 1) - 52);
  return static_cast<double>(std::fabs(static_cast<long double>(power(x, y)) - expected) / unit);
}

TEST(Binary, PowersOfDoublesAreWithinAUnitInTheLastPlace) {
  for_each_target([] {
    double worst = 0, worst_subnormal = 0;
    for (double x = 3e-320; x < 1e307; x *= 1.0373) {
      for (double y : {-3.3, -1.0, -0.71, -1e-5, 1e-200, 0.013, 0.5, 1.0, 1.7, 2.0, 3.0, 7.25}) {
        const long double expected = std::pow(static_cast<long double>(x), static_cast<long double>(y));
        if (expected < 5e-324L || expected > 1.79e308L) continue;
        double& most = expected < 2.3e-308L ? worst_subnormal : worst;
        most = std::max(most, power_error(x, y));
      }
    }
    for (int i = 1; i < 3000; ++i) {  // near 1, where the logarithm is small and the exponent large
      const double x = 1 + (i % 2 == 0 ? 1 : -1) * std::ldexp(1.0 + i / 1000.0, -1 - i % 50);
      worst = std::max(worst, power_error(x, 700 / std::fabs(std::log(x))));
      worst = std::max(worst, power_error(x, -700 / std::fabs(std::log(x))));
    }
    EXPECT_LT(worst, 0.9);
    EXPECT_LE(worst_subnormal, 1.0);  // rounded twice
  });
}

TEST(Binary, PowersOfDoublesAreExactWhereTheyAreWhole) {
  for_each_target([] {
    for (int base = 2; base < 40; ++base) {
      double expected = base;
      for (int exponent = 2; expected < 9e15 / base; ++exponent) {
        expected *= base;
        EXPECT_EQ(power(double(base), double(exponent)), expected) << base << " ^ " << exponent;
        EXPECT_EQ(power(expected, 1.0), expected);
      }
    }
  });
}

// As C's on every pair of these.
template <typename T>
void check_special_powers() {
  using Number = std::numeric_limits<T>;
  const T infinity = Number::infinity(), nan = Number::quiet_NaN(), tiny = Number::denorm_min(),
          most = Number::max();
  const T odd = std::ldexp(T{1}, Number::digits) - 1;
  const std::vector<T> numbers = {0,       T(-0.0), 1,       -1,      2,        -2,        3,    -3,
                                  T(0.5),  T(-0.5), T(2.5),  T(-2.5), tiny,     -tiny,     most, -most,
                                  T(1e10), odd,     odd + 1, T(1e-3), infinity, -infinity, nan};
  for_each_target([&] {
    for (T x : numbers) {
      for (T y : numbers) {
        const T expected = static_cast<T>(std::pow(double{x}, double{y})), found = power(x, y);
        SCOPED_TRACE(testing::Message() << x << " ^ " << y);
        if (std::isnan(expected)) {
          EXPECT_TRUE(std::isnan(found)) << found;
        } else {
          if constexpr (std::is_same_v<T, float>) {
            EXPECT_FLOAT_EQ(found, expected);
          } else {
            EXPECT_DOUBLE_EQ(found, expected);
          }
          EXPECT_EQ(std::signbit(found), std::signbit(expected));
        }
      }
    }
  });
}

TEST(Binary, PowersHaveCsSpecialCases) {
  check_special_powers<float>();
  check_special_powers<double>();
}

}  // namespace
}  // namespace plimsoll
