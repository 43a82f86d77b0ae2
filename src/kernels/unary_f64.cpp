#include <algorithm>
#include <cmath>

#include "kernels/unary.h"
#include "kernels/unary_vectors_f64.h"

namespace plimsoll::kernels {
namespace {

double clamp(double x, double low, double high) {
  x = x < low ? low : x;  // NaN passes
  return x > high ? high : x;
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double apply_more(const Unary& f, double x) {
  const double a = f.a, b = f.b;
  switch (f.kind) {
    case UnaryKind::kSin:
      return std::sin(x);
    case UnaryKind::kCos:
      return std::cos(x);
    case UnaryKind::kTan:
      return std::tan(x);
    case UnaryKind::kAsin:
      return std::asin(x);
    case UnaryKind::kAcos:
      return std::acos(x);
    case UnaryKind::kAtan:
      return std::atan(x);
    case UnaryKind::kSinh:
      return std::sinh(x);
    case UnaryKind::kCosh:
      return std::cosh(x);
    case UnaryKind::kAsinh:
      return std::asinh(x);
    case UnaryKind::kAcosh:
      return std::acosh(x);
    case UnaryKind::kAtanh:
      return std::atanh(x);
    case UnaryKind::kMish:
      return x * std::tanh((x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x))));
    case UnaryKind::kCelu:
      return x < 0 ? a * std::expm1(x / a) : x;
    case UnaryKind::kSwish:
      return x * sigmoid(a * x);
    case UnaryKind::kSoftsign:
      return x / (1 + std::fabs(x));
    case UnaryKind::kShrink:
      return x < -a ? x + b : x > a ? x - b : 0;
    default:  // kThresholdedRelu
      return x > a ? x : 0;
  }
}

double apply(const Unary& f, double x) {
  switch (f.kind) {
    case UnaryKind::kAbs:
      return std::fabs(x);
    case UnaryKind::kNeg:
      return -x;
    case UnaryKind::kSqrt:
      return std::sqrt(x);
    case UnaryKind::kReciprocal:
      return 1 / x;
    case UnaryKind::kFloor:
      return std::floor(x);
    case UnaryKind::kCeil:
      return std::ceil(x);
    case UnaryKind::kRound:
      return std::nearbyint(x);
    case UnaryKind::kExp:
      return std::exp(x);
    case UnaryKind::kLog:
      return std::log(x);
    case UnaryKind::kErf:
      return std::erf(x);
    case UnaryKind::kTanh:
      return std::tanh(x);
    case UnaryKind::kSigmoid:
      return sigmoid(x);
    case UnaryKind::kSilu:
      return x * sigmoid(x);
    case UnaryKind::kSoftplus:
      return (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x)));
    case UnaryKind::kGelu:
      return 0.5 * x * (1 + std::erf(x * 0.70710678118654752440));
    case UnaryKind::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case UnaryKind::kRelu:
      return x < 0 ? 0 : x;
    case UnaryKind::kLeakyRelu:
      return x < 0 ? double{f.a} * x : x;
    case UnaryKind::kElu:
      return x < 0 ? double{f.a} * std::expm1(x) : x;
    case UnaryKind::kSelu:
      return double{f.b} * (x < 0 ? double{f.a} * std::expm1(x) : x);
    case UnaryKind::kHardSigmoid:
      return clamp(double{f.a} * x + double{f.b}, 0, 1);
    case UnaryKind::kHardSwish:
      return x * (clamp(x + 3, 0, 6) / 6);
    case UnaryKind::kClip:
      return clamp(x, f.a, f.b);
    default:
      return apply_more(f, x);
  }
}

}  // namespace

void unary_f64(const Unary& f, const double* x, double* y, int64_t count) {
  if (map_vectors_f64(f, x, y, count)) return;
  for (int64_t i = 0; i < count; ++i) y[i] = apply(f, x[i]);
}

}  // namespace plimsoll::kernels
