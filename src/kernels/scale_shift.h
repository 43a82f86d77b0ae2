// y = activation(scale * x + shift + z), over rows of channels.
#pragma once

#include <cstdint>

#include "kernels/activation.h"

namespace plimsoll::kernels {

// `rows` rows of `width` elements; scale and shift vary along a row, or are one number each.
// `addend` may be null. y may be x or addend.
struct ScaleShiftRows {
  int64_t rows = 0, width = 0;
  const float* scale = nullptr;
  const float* shift = nullptr;
  bool scale_varies = false, shift_varies = false;
  Activation activation;
};
void scale_shift_f32(const ScaleShiftRows& rows, const float* x, const float* addend, float* y);

}  // namespace plimsoll::kernels
