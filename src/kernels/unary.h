// Functions of one float, applied to arrays.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

enum class UnaryKind {
  kAbs,
  kNeg,
  kSqrt,
  kReciprocal,
  kFloor,
  kCeil,
  kRound,  // halves to even
  kExp,
  kLog,
  kErf,
  kTanh,
  kSigmoid,
  kSilu,      // x * sigmoid(x)
  kSoftplus,  // log(1 + e^x)
  kGelu,      // with erf
  kGeluTanh,
  kRelu,
  kLeakyRelu,    // x < 0 ? a * x : x
  kElu,          // x < 0 ? a * (e^x - 1) : x
  kSelu,         // b * elu(x)
  kHardSigmoid,  // min(max(a * x + b, 0), 1)
  kHardSwish,    // x * min(max(x / 6 + 1/2, 0), 1)
  kClip,         // min(max(x, a), b); NaN passes
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
  kMish,             // x * tanh(softplus(x))
  kCelu,             // x < 0 ? a * (e^(x/a) - 1) : x
  kSwish,            // x * sigmoid(a * x)
  kSoftsign,         // x / (1 + |x|)
  kShrink,           // x < -a ? x + b : x > a ? x - b : 0
  kThresholdedRelu,  // x > a ? x : 0
};

struct Unary {
  UnaryKind kind;
  float a = 0;
  float b = 0;
};

// y[i] = f(x[i]); y may be x. Exp, erf, tanh, sigmoid and what is made of them are within about two
// units in the last place of their largest term, the trigonometric and hyperbolic ones within about four.
void unary_f32(const Unary& f, const float* x, float* y, int64_t count);
// The same, within a few units in the last place of a double.
void unary_f64(const Unary& f, const double* x, double* y, int64_t count);

}  // namespace plimsoll::kernels
