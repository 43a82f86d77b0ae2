// Functions of two floats, with broadcasting.
#pragma once

#include "kernels/broadcast.h"

namespace plimsoll::kernels {

enum class BinaryKind {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMin,    // NaN wins
  kMax,    // NaN wins
  kPrelu,  // a < 0 ? a * b : a
  kPow,    // a^b
};

// y = f(a, b) over one block; y may be a or b where their element is at the same place.
void binary_f32(BinaryKind f, const BroadcastBlock& block, const float* a, const float* b, float* y);

}  // namespace plimsoll::kernels
