// Weights of 2, 4 or 8 bits in blocks that share a scale, back to floats.
#pragma once

#include <cstdint>

#include "kernels/nbits_dot.h"

namespace plimsoll::kernels {

// y = (x - zero) * scale for `count` elements from the start of a byte, the first in its lowest bits.
void dequantize_bits(const uint8_t* x, int bits, int64_t count, float scale, float zero, float* y);
// The k weights of one column.
void dequantize_column(const NBitsMatrix& matrix, int64_t column, float* y);

}  // namespace plimsoll::kernels
