#include "kernels/unary.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/each_target.h"

namespace plimsoll {
namespace {

using kernels::Unary;
using kernels::UnaryKind;

// Odd counts leave a tail for every vector length.
std::vector<float> grid(float low, float high, int count = 10007) {
  std::vector<float> x;
  for (int i = 0; i < count; ++i)
    x.push_back(low + (high - low) * static_cast<float>(i) / static_cast<float>(count - 1));
  return x;
}

// The largest error relative to max(|expected|, floor).
double worst_error(const Unary& f, const std::vector<float>& x, double floor) {
  std::vector<double> wide(x.begin(), x.end()), expected(x.size());
  kernels::unary_f64(f, wide.data(), expected.data(), static_cast<int64_t>(x.size()));
  std::vector<float> y(x.size());
  kernels::unary_f32(f, x.data(), y.data(), static_cast<int64_t>(x.size()));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = std::fabs(y[i] - expected[i]) / std::max(std::fabs(expected[i]), floor);
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

TEST(Unary, IsCloseToLibm) {
  for_each_target([] {
    EXPECT_LT(worst_error({UnaryKind::kExp}, grid(-87, 88.7f), 0), 3e-7);
    EXPECT_LT(worst_error({UnaryKind::kTanh}, grid(-12, 12), 0), 3e-7);
    EXPECT_LT(worst_error({UnaryKind::kTanh}, grid(-1e-3f, 1e-3f), 0), 3e-7);
    EXPECT_LT(worst_error({UnaryKind::kErf}, grid(-5, 5), 0), 3e-7);
    EXPECT_LT(worst_error({UnaryKind::kErf}, grid(-1e-3f, 1e-3f), 0), 3e-7);
    EXPECT_LT(worst_error({UnaryKind::kSigmoid}, grid(-87, 87), 0), 4e-7);
    EXPECT_LT(worst_error({UnaryKind::kSilu}, grid(-80, 80), 0), 4e-7);
    EXPECT_LT(worst_error({UnaryKind::kLog}, grid(1e-30f, 3), 1e-1), 4e-7);
    EXPECT_LT(worst_error({UnaryKind::kLog}, grid(1e-3f, 1e30f), 0), 4e-7);
    EXPECT_LT(worst_error({UnaryKind::kSoftplus}, grid(-80, 80), 0), 1e-6);
    EXPECT_LT(worst_error({UnaryKind::kGelu}, grid(-6, 6), 1), 9e-7);
    EXPECT_LT(worst_error({UnaryKind::kGeluTanh}, grid(-6, 6), 1), 4e-7);
    EXPECT_LT(worst_error({UnaryKind::kElu, 1.3f}, grid(-20, 5), 0), 4e-7);
    EXPECT_LT(worst_error({UnaryKind::kSelu, 1.67f, 1.05f}, grid(-100, 5), 0), 4e-7);
  });
}

TEST(Unary, TrigonometricFunctionsAreCloseToLibm) {
  for_each_target([] {
    for (UnaryKind kind : {UnaryKind::kSin, UnaryKind::kCos, UnaryKind::kTan}) {
      SCOPED_TRACE(static_cast<int>(kind));
      EXPECT_LT(worst_error({kind}, grid(-100, 100), 1e-4), 1e-6);
      EXPECT_LT(worst_error({kind}, grid(-1e-3f, 1e-3f), 0), 4e-7);
      EXPECT_LT(worst_error({kind}, grid(20000, 40000), 1e-4), 2e-6);  // over the end of the reduction
    }
    for (UnaryKind kind : {UnaryKind::kAsin, UnaryKind::kAcos, UnaryKind::kAtanh}) {
      SCOPED_TRACE(static_cast<int>(kind));
      EXPECT_LT(worst_error({kind}, grid(-0.9999f, 0.9999f), 1e-3), 6e-7);
    }
    EXPECT_LT(worst_error({UnaryKind::kAsin}, grid(-1e-3f, 1e-3f), 0), 4e-7);
    EXPECT_LT(worst_error({UnaryKind::kAtanh}, grid(-1e-3f, 1e-3f), 0), 6e-7);
    EXPECT_LT(worst_error({UnaryKind::kAtan}, grid(-30, 30), 0), 6e-7);
    EXPECT_LT(worst_error({UnaryKind::kSinh}, grid(-89, 89), 0), 1e-6);
    EXPECT_LT(worst_error({UnaryKind::kSinh}, grid(-1e-3f, 1e-3f), 0), 4e-7);
    EXPECT_LT(worst_error({UnaryKind::kCosh}, grid(-89, 89), 0), 1e-6);
    EXPECT_LT(worst_error({UnaryKind::kAsinh}, grid(-1e6f, 1e6f), 0), 6e-7);
    EXPECT_LT(worst_error({UnaryKind::kAsinh}, grid(-3, 3), 0), 6e-7);
    EXPECT_LT(worst_error({UnaryKind::kAcosh}, grid(1, 3), 1e-2), 1e-6);
    EXPECT_LT(worst_error({UnaryKind::kAcosh}, grid(3, 1e30f), 0), 6e-7);
  });
}

TEST(Unary, FurtherActivationsAreCloseToLibm) {
  for_each_target([] {
    EXPECT_LT(worst_error({UnaryKind::kMish}, grid(-80, 80), 0), 1e-6);
    EXPECT_LT(worst_error({UnaryKind::kCelu, 0.7f}, grid(-50, 5), 0), 6e-7);
    EXPECT_LT(worst_error({UnaryKind::kCelu, -2.0f}, grid(-100, 5), 0), 3e-6);
    EXPECT_LT(worst_error({UnaryKind::kSwish, 1.7f}, grid(-40, 40), 0), 6e-6);
    EXPECT_LT(worst_error({UnaryKind::kSoftsign}, grid(-40, 40), 0), 3e-7);
    EXPECT_LT(worst_error({UnaryKind::kShrink, 0.5f, 0.2f}, grid(-4, 4), 0.1), 3e-7);
    EXPECT_LT(worst_error({UnaryKind::kThresholdedRelu, 0.5f}, grid(-4, 4), 0), 1e-7);
  });
}

TEST(Unary, AgreesOnSimpleFunctions) {
  for_each_target([] {
    for (UnaryKind kind :
         {UnaryKind::kAbs, UnaryKind::kNeg, UnaryKind::kFloor, UnaryKind::kCeil, UnaryKind::kRound,
          UnaryKind::kRelu, UnaryKind::kReciprocal, UnaryKind::kHardSwish})
      EXPECT_LT(worst_error({kind}, grid(-7.3f, 7.1f), 1), 2e-7) << static_cast<int>(kind);
    EXPECT_LT(worst_error({UnaryKind::kSqrt}, grid(0, 100), 0.1), 1e-7);
    EXPECT_LT(worst_error({UnaryKind::kLeakyRelu, 0.1f}, grid(-4, 4), 0.1), 1e-7);
    EXPECT_LT(worst_error({UnaryKind::kHardSigmoid, 0.2f, 0.5f}, grid(-4, 4), 0.1), 1e-6);
    EXPECT_LT(worst_error({UnaryKind::kClip, -1, 2}, grid(-4, 4), 0), 1e-7);
  });
}

float at(UnaryKind kind, float x) {
  kernels::unary_f32({kind}, &x, &x, 1);
  return x;
}

TEST(Unary, ReachesTheLimits) {
  const float infinity = std::numeric_limits<float>::infinity();
  for_each_target([=] {
    EXPECT_EQ(at(UnaryKind::kExp, -infinity), 0);
    EXPECT_EQ(at(UnaryKind::kExp, -200), 0);
    EXPECT_EQ(at(UnaryKind::kExp, infinity), infinity);
    EXPECT_EQ(at(UnaryKind::kExp, 89), infinity);
    EXPECT_NEAR(at(UnaryKind::kExp, -95), std::exp(-95.0), 2e-45);
    EXPECT_EQ(at(UnaryKind::kExp, 0), 1);
    EXPECT_EQ(at(UnaryKind::kTanh, infinity), 1);
    EXPECT_EQ(at(UnaryKind::kTanh, -infinity), -1);
    EXPECT_TRUE(std::signbit(at(UnaryKind::kTanh, -0.0f)));
    EXPECT_EQ(at(UnaryKind::kErf, infinity), 1);
    EXPECT_EQ(at(UnaryKind::kErf, -infinity), -1);
    EXPECT_EQ(at(UnaryKind::kSigmoid, infinity), 1);
    EXPECT_EQ(at(UnaryKind::kSigmoid, -infinity), 0);
    EXPECT_EQ(at(UnaryKind::kSigmoid, 1000), 1);
    EXPECT_EQ(at(UnaryKind::kSigmoid, -88), 0);
    EXPECT_EQ(at(UnaryKind::kSilu, 1000), 1000);
    EXPECT_EQ(at(UnaryKind::kSilu, -1e30f), 0);
    EXPECT_EQ(at(UnaryKind::kLog, 0), -infinity);
    EXPECT_EQ(at(UnaryKind::kLog, infinity), infinity);
    EXPECT_TRUE(std::isnan(at(UnaryKind::kLog, -1)));
    EXPECT_EQ(at(UnaryKind::kSoftplus, 1000), 1000);
    EXPECT_EQ(at(UnaryKind::kSinh, infinity), infinity);
    EXPECT_EQ(at(UnaryKind::kSinh, -infinity), -infinity);
    EXPECT_EQ(at(UnaryKind::kCosh, -infinity), infinity);
    EXPECT_EQ(at(UnaryKind::kAsinh, -infinity), -infinity);
    EXPECT_EQ(at(UnaryKind::kAcosh, infinity), infinity);
    EXPECT_EQ(at(UnaryKind::kAcosh, 1), 0);
    EXPECT_TRUE(std::isnan(at(UnaryKind::kAcosh, 0.5f)));
    EXPECT_TRUE(std::isnan(at(UnaryKind::kAcosh, -3)));
    EXPECT_EQ(at(UnaryKind::kAtanh, -1), -infinity);
    EXPECT_TRUE(std::isnan(at(UnaryKind::kAtanh, 1.5f)));
    EXPECT_TRUE(std::isnan(at(UnaryKind::kAsin, 1.5f)));
    EXPECT_TRUE(std::isnan(at(UnaryKind::kSin, infinity)));
    EXPECT_FLOAT_EQ(at(UnaryKind::kAtan, infinity), 1.57079633f);
    EXPECT_EQ(at(UnaryKind::kMish, 1000), 1000);
  });
}

TEST(Unary, PassesNan) {
  for_each_target([] {
    for (int kind = 0; kind <= static_cast<int>(UnaryKind::kSoftsign); ++kind) {
      float x = std::numeric_limits<float>::quiet_NaN();
      kernels::unary_f32({static_cast<UnaryKind>(kind), 0.5f, 1.0f}, &x, &x, 1);
      EXPECT_TRUE(std::isnan(x)) << kind;
    }
  });
}

TEST(Unary, LeavesWhatLiesBehindAlone) {
  for_each_target([] {
    for (int count = 0; count < 40; ++count) {
      std::vector<float> x(64, -2.0f);
      kernels::unary_f32({UnaryKind::kAbs}, x.data(), x.data(), count);
      for (int i = 0; i < 64; ++i) EXPECT_EQ(x[static_cast<size_t>(i)], i < count ? 2.0f : -2.0f);
    }
  });
}

}  // namespace
}  // namespace plimsoll
