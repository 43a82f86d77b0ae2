#pragma once

namespace plimsoll::kernels {

// Functions that a kernel can apply to its results before storing them.
enum class ActivationKind {
  kNone,
  kRelu,
  kLeakyRelu,  // x < 0 ? a * x : x
  kClip,       // min(max(x, a), b); NaN passes
  kSigmoid,
  kSilu,  // x * sigmoid(x)
  kTanh,
  kGelu,         // the exact one, with erf
  kHardSigmoid,  // min(max(a * x + b, 0), 1)
  kHardSwish,    // x * min(max(x / 6 + 1/2, 0), 1)
};

struct Activation {
  ActivationKind kind = ActivationKind::kNone;
  float a = 0;
  float b = 0;
};

}  // namespace plimsoll::kernels
