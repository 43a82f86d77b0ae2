// Arithmetic on quantized bytes that becomes bytes again.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

// Two runs of bytes of one type; a stride of 0 is one element for all. Results are in the range of the type.
struct ByteOperands {
  const uint8_t *a = nullptr, *b = nullptr;
  int64_t a_stride = 1, b_stride = 1;
  int32_t a_zero = 0, b_zero = 0, zero = 0;
  bool is_signed = false;
};
// y = saturate(round((a - a_zero) * a_scale + (b - b_zero) * b_scale) + zero)
void add_8(const ByteOperands& x, int64_t count, float a_scale, float b_scale, uint8_t* y);
// y = saturate(round((a - a_zero) * (b - b_zero) * scale) + zero)
void multiply_8(const ByteOperands& x, int64_t count, float scale, uint8_t* y);

// sums[i]: that of x[r * stride + i] over all rows, of which there are at most 2^23.
void sum_rows_8(const uint8_t* x, bool is_signed, int64_t rows, int64_t stride, int64_t count, int32_t* sums);

}  // namespace plimsoll::kernels
