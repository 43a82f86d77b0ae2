// Functions of two floats of any type, with broadcasting; those of 16 bits are rounded once.
#pragma once

#include "kernels/broadcast.h"
#include "kernels/storage.h"

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
  kGate,   // a > 0 ? b : 0
};

// y = f(a, b) over one block; y may be a or b where their element is at the same place.
void binary(BinaryKind f, const BroadcastBlock& block, const float* a, const float* b, float* y);
void binary(BinaryKind f, const BroadcastBlock& block, const double* a, const double* b, double* y);
void binary(BinaryKind f, const BroadcastBlock& block, const Float16* a, const Float16* b, Float16* y);
void binary(BinaryKind f, const BroadcastBlock& block, const BFloat16* a, const BFloat16* b, BFloat16* y);

}  // namespace plimsoll::kernels
