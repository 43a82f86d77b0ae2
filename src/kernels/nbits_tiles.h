// Many rows times a matrix whose columns are of 2, 4 or 8 bits (kernels/nbits_dot.h), on AMX's tiles: A and a
// panel of columns at a time are rounded to bfloat16, products are summed in 32-bit floats.
//   y = A * W + bias
// Nothing here allocates, owns memory or throws; every buffer is the caller's, and aligned to 64.
#pragma once

#include <cstdint>

#include "kernels/nbits_dot.h"

namespace plimsoll::kernels {

// Whether this machine multiplies such tiles.
bool nbits_has_tiles();

struct NBitsTilesScratch {
  static constexpr int64_t kRowsTogether = 32;
  // k in whole steps.
  static int64_t padded(int64_t k) { return (k + 31) / 32 * 32; }
  // Of A rounded, all rows in whole tiles.
  static int64_t row_bytes(int64_t k) { return padded(k) * 2; }
  // One task's: a panel, sixteen columns on their way into it, and one of floats.
  static int64_t task_bytes(int64_t k) { return padded(k) * (64 + 32 + 4); }
};

// Rows [first, last) of A.
void nbits_round_rows(int64_t k, const float* a, int64_t first, int64_t last, void* rounded);
// Columns [first, last) of y; `first` is a multiple of 32. `rounded`: room for whole tiles of rows.
void nbits_multiply_tiles(const NBitsMatrix& matrix, const void* rounded, int64_t rows, const float* bias,
                          float* y, int64_t y_stride, int64_t first, int64_t last, void* scratch);

}  // namespace plimsoll::kernels
