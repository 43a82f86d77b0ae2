// y = activation(scale * x + shift + z), over rows of channels.
#pragma once

#include <cstdint>

#include "kernels/activation.h"
#include "kernels/storage.h"

namespace plimsoll::kernels {

// `rows` rows of `width` elements; scale and shift vary along a row, or are one number each.
// `addend` may be null. y may be x or addend. 16 bits are rounded once.
struct ScaleShiftRows {
  int64_t rows = 0, width = 0;
  const float* scale = nullptr;
  const float* shift = nullptr;
  bool scale_varies = false, shift_varies = false;
  Activation activation;
};
void scale_shift(const ScaleShiftRows& rows, const float* x, const float* addend, float* y);
void scale_shift(const ScaleShiftRows& rows, const Float16* x, const Float16* addend, Float16* y);
void scale_shift(const ScaleShiftRows& rows, const BFloat16* x, const BFloat16* addend, BFloat16* y);

}  // namespace plimsoll::kernels
