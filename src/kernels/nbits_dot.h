// A few rows times a matrix whose columns are of 2, 4 or 8 bits, in blocks that share a scale. The weights
// become numbers in registers: what is read from memory is their bits.
//   y = A * W + bias, W[k][n] = (q - zero) * scale
// Nothing here allocates, owns memory or throws; every buffer is the caller's.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

struct NBitsMatrix {
  const uint8_t* data = nullptr;  // column after column, each [blocks][block * bits / 8], low bits first
  int64_t k = 0, n = 0;
  int bits = 4;                   // 2, 4 or 8
  int64_t block = 0;              // a power of two from 16 on
  const float* scales = nullptr;  // [n][blocks]
  // At most one of the two; with neither the zero point is the middle.
  const uint8_t* zeros = nullptr;     // [n][(blocks * bits + 7) / 8], low bits first
  const float* real_zeros = nullptr;  // [n][blocks]

  int64_t blocks() const { return (k + block - 1) / block; }
};

// What A becomes before it is multiplied.
enum class NBitsForm {
  kFloat,  // as it is: products and sums in 32-bit floats
  kBytes,  // 8-bit integers with a scale per block of A: a product of integers, exact in 32 bits
};
// Whether this machine multiplies weights of so many bits by bytes.
bool nbits_has_bytes(int bits);

// A in the order in which it is read: bytes per row, a multiple of 64.
int64_t nbits_row_bytes(const NBitsMatrix& matrix, NBitsForm form);
// `to` is aligned to 64 and has room for all rows.
void nbits_arrange(const NBitsMatrix& matrix, NBitsForm form, const float* a, int64_t row_stride,
                   int64_t rows, void* to);

struct NBitsRows {
  const void* arranged = nullptr;
  int64_t rows = 0;
  const float* bias = nullptr;  // null, or one per column
  float* y = nullptr;
  int64_t y_stride = 0;
};
// Columns [first, last) of y.
void nbits_dot(const NBitsMatrix& matrix, NBitsForm form, const NBitsRows& rows, int64_t first, int64_t last);

}  // namespace plimsoll::kernels
