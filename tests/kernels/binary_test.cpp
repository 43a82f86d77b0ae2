#include "kernels/binary.h"

#include <cmath>
#include <limits>
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

float power(float x, float y) {
  float result;
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

// The same as C's on every pair of these.
TEST(Binary, PowersHaveCsSpecialCases) {
  const float infinity = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  const float tiny = std::numeric_limits<float>::denorm_min(), most = std::numeric_limits<float>::max();
  const std::vector<float> numbers = {0,     -0.0f,    1,        -1,    2,        -2,        3,    -3,
                                      0.5f,  -0.5f,    2.5f,     -2.5f, tiny,     -tiny,     most, -most,
                                      1e10f, 16777215, 16777216, 1e-3f, infinity, -infinity, nan};
  for_each_target([&] {
    for (float x : numbers) {
      for (float y : numbers) {
        const float expected = static_cast<float>(std::pow(double{x}, double{y})), found = power(x, y);
        SCOPED_TRACE(testing::Message() << x << " ^ " << y);
        if (std::isnan(expected)) {
          EXPECT_TRUE(std::isnan(found)) << found;
        } else {
          EXPECT_FLOAT_EQ(found, expected);
          EXPECT_EQ(std::signbit(found), std::signbit(expected));
        }
      }
    }
  });
}

}  // namespace
}  // namespace plimsoll
