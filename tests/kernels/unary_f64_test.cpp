// The vectors of doubles against libm.
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/unary.h"

namespace plimsoll {
namespace {

using kernels::Unary;
using kernels::UnaryKind;

std::vector<double> grid(double low, double high, int count = 10007) {
  std::vector<double> x;
  for (int i = 0; i < count; ++i) x.push_back(low + (high - low) * i / (count - 1));
  return x;
}

// The largest error relative to max(|expected|, floor).
double worst_error(const Unary& f, const std::function<double(double)>& libm, const std::vector<double>& x,
                   double floor) {
  std::vector<double> y(x.size());
  kernels::unary_f64(f, x.data(), y.data(), static_cast<int64_t>(x.size()));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = libm(x[i]);
    const double scale = std::max(std::fabs(expected), floor), difference = std::fabs(y[i] - expected);
    const double error = scale > 0 ? difference / scale : difference;
    if (std::isnan(error)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, error);
  }
  return worst;
}

TEST(UnaryF64, IsCloseToLibm) {
  const auto exp = [](double x) { return std::exp(x); };
  const auto tanh = [](double x) { return std::tanh(x); };
  const auto erf = [](double x) { return std::erf(x); };
  const auto log = [](double x) { return std::log(x); };
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto gelu = [](double x) { return 0.5 * x * (1 + std::erf(x * 0.70710678118654752440)); };
  const auto softplus = [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); };
  const auto elu = [](double x) { return x < 0 ? 1.25 * std::expm1(x) : x; };
  for_each_target([&] {
    EXPECT_LT(worst_error({UnaryKind::kExp}, exp, grid(-708, 709.7), 0), 6e-16);
    EXPECT_LT(worst_error({UnaryKind::kExp}, exp, grid(-745, -708), 1e-307), 6e-16);
    EXPECT_LT(worst_error({UnaryKind::kTanh}, tanh, grid(-25, 25), 0), 8e-16);
    EXPECT_LT(worst_error({UnaryKind::kTanh}, tanh, grid(-1e-3, 1e-3), 0), 8e-16);
    EXPECT_LT(worst_error({UnaryKind::kErf}, erf, grid(-7, 7), 0), 8e-16);
    EXPECT_LT(worst_error({UnaryKind::kErf}, erf, grid(-1e-3, 1e-3), 0), 8e-16);
    EXPECT_LT(worst_error({UnaryKind::kLog}, log, grid(1e-300, 3), 1e-1), 1e-15);
    EXPECT_LT(worst_error({UnaryKind::kLog}, log, grid(1e-3, 1e300), 0), 1e-15);
    EXPECT_LT(worst_error({UnaryKind::kSigmoid}, sigmoid, grid(-700, 700), 0), 1e-15);
    EXPECT_LT(worst_error({UnaryKind::kGelu}, gelu, grid(-9, 9), 1), 1e-15);
    EXPECT_LT(worst_error({UnaryKind::kSoftplus}, softplus, grid(-80, 80), 0), 2e-15);
    EXPECT_LT(worst_error({UnaryKind::kElu, 1.25f}, elu, grid(-40, 5), 0), 8e-16);
  });
}

TEST(UnaryF64, TrigonometryIsCloseToLibm) {
  const double one = 1.0;
  for_each_target([&] {
    EXPECT_LT(worst_error(
                  {UnaryKind::kSin}, [](double x) { return std::sin(x); }, grid(-300, 300), one),
              1e-15);
    EXPECT_LT(worst_error(
                  {UnaryKind::kCos}, [](double x) { return std::cos(x); }, grid(-300, 300), one),
              1e-15);
    EXPECT_LT(worst_error(
                  {UnaryKind::kSin}, [](double x) { return std::sin(x); }, grid(-1e6, 1e6), one),
              1e-15);
    EXPECT_LT(worst_error(
                  {UnaryKind::kTan}, [](double x) { return std::tan(x); }, grid(-1.5, 1.5), 0),
              2e-15);
    EXPECT_LT(worst_error(
                  {UnaryKind::kAsin}, [](double x) { return std::asin(x); }, grid(-1, 1), 0),
              2e-15);
    EXPECT_LT(worst_error(
                  {UnaryKind::kAcos}, [](double x) { return std::acos(x); }, grid(-1, 1), 0),
              2e-15);
    EXPECT_LT(worst_error(
                  {UnaryKind::kAtan}, [](double x) { return std::atan(x); }, grid(-50, 50), 0),
              1e-15);
    EXPECT_LT(worst_error(
                  {UnaryKind::kSinh}, [](double x) { return std::sinh(x); }, grid(-700, 700), 0),
              2e-15);
    EXPECT_LT(worst_error(
                  {UnaryKind::kCosh}, [](double x) { return std::cosh(x); }, grid(-700, 700), 0),
              2e-15);
    EXPECT_LT(worst_error(
                  {UnaryKind::kAsinh}, [](double x) { return std::asinh(x); }, grid(-90, 90), 0),
              2e-15);
    EXPECT_LT(worst_error(
                  {UnaryKind::kAcosh}, [](double x) { return std::acosh(x); }, grid(1.5, 1e6), 0),
              2e-15);
    EXPECT_LT(worst_error(
                  {UnaryKind::kAtanh}, [](double x) { return std::atanh(x); }, grid(-0.999, 0.999), 0),
              2e-15);
  });
}

TEST(UnaryF64, ActivationsAreCloseToLibm) {
  const auto mish = [](double x) {
    return x * std::tanh(std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))));
  };
  const auto celu = [](double x) { return x < 0 ? 1.25 * std::expm1(x / 1.25) : x; };
  const auto swish = [](double x) { return x / (1 + std::exp(-1.25 * x)); };
  const auto shrink = [](double x) { return x < -0.5 ? x + 0.25 : x > 0.5 ? x - 0.25 : 0; };
  for_each_target([&] {
    EXPECT_LT(worst_error({UnaryKind::kMish}, mish, grid(-30, 30), 0), 3e-15);
    EXPECT_LT(worst_error({UnaryKind::kCelu, 1.25f}, celu, grid(-900, 5), 0), 1e-15);
    EXPECT_LT(worst_error({UnaryKind::kSwish, 1.25f}, swish, grid(-500, 500), 0), 2e-15);
    EXPECT_EQ(worst_error(
                  {UnaryKind::kSoftsign}, [](double x) { return x / (1 + std::fabs(x)); }, grid(-9, 9), 0),
              0);
    EXPECT_EQ(worst_error({UnaryKind::kShrink, 0.5f, 0.25f}, shrink, grid(-2, 2), 1), 0);
    EXPECT_EQ(
        worst_error(
            {UnaryKind::kThresholdedRelu, 0.5f}, [](double x) { return x > 0.5 ? x : 0; }, grid(-2, 2), 1),
        0);
  });
}

double at(UnaryKind kind, double x) {
  kernels::unary_f64({kind}, &x, &x, 1);
  return x;
}

TEST(UnaryF64, ReachesTheLimits) {
  const double infinity = std::numeric_limits<double>::infinity();
  for_each_target([=] {
    EXPECT_EQ(at(UnaryKind::kExp, -infinity), 0);
    EXPECT_EQ(at(UnaryKind::kExp, infinity), infinity);
    EXPECT_EQ(at(UnaryKind::kExp, 710), infinity);
    EXPECT_EQ(at(UnaryKind::kExp, 0), 1);
    EXPECT_EQ(at(UnaryKind::kTanh, infinity), 1);
    EXPECT_TRUE(std::signbit(at(UnaryKind::kTanh, -0.0)));
    EXPECT_EQ(at(UnaryKind::kErf, -infinity), -1);
    EXPECT_EQ(at(UnaryKind::kErf, 5.99), 1);
    EXPECT_EQ(at(UnaryKind::kSigmoid, -infinity), 0);
    EXPECT_EQ(at(UnaryKind::kSigmoid, -710), 0);
    EXPECT_EQ(at(UnaryKind::kSigmoid, infinity), 1);
    EXPECT_EQ(at(UnaryKind::kLog, 0), -infinity);
    EXPECT_EQ(at(UnaryKind::kLog, infinity), infinity);
    EXPECT_TRUE(std::isnan(at(UnaryKind::kLog, -1)));
    EXPECT_EQ(at(UnaryKind::kSoftplus, 1000), 1000);
  });
}

TEST(UnaryF64, PassesNanAndLeavesWhatLiesBehindAlone) {
  for_each_target([] {
    for (int kind = 0; kind <= static_cast<int>(UnaryKind::kSoftsign); ++kind) {
      double x[2] = {std::numeric_limits<double>::quiet_NaN(), 7};
      kernels::unary_f64({static_cast<UnaryKind>(kind), 0.5f, 1.0f}, x, x, 1);
      EXPECT_TRUE(std::isnan(x[0])) << kind;
      EXPECT_EQ(x[1], 7);
    }
  });
}

}  // namespace
}  // namespace plimsoll
