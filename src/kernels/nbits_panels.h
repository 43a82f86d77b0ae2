// Many rows times a matrix whose columns are of 2, 4 or 8 bits, where this machine multiplies such weights by
// bytes (nbits_has_bytes in kernels/nbits_dot.h): A becomes bytes with a scale per block, a panel of columns
// at a time unsigned bytes; sums of a block are exact, and are added as 32-bit floats.
//   y = A * W + bias
// Nothing here allocates, owns memory or throws; every buffer is the caller's, and aligned to 64.
#pragma once

#include <cstdint>

#include "kernels/nbits_dot.h"

namespace plimsoll::kernels {

struct NBitsPanelsScratch {
  static constexpr int64_t kColumns = 32;
  static int64_t padded(const NBitsMatrix& m) { return m.blocks() * m.block; }
  // A row of A: its bytes, and of every block the scale and the sum.
  static int64_t row_bytes(const NBitsMatrix& m) { return (padded(m) + m.blocks() * 8 + 63) / 64 * 64; }
  // One task's: a panel, its scales, and these times its zero points.
  static int64_t task_bytes(const NBitsMatrix& m) { return kColumns * (padded(m) + m.blocks() * 8); }
};

// Rows [first, last) of A.
void nbits_quantize_rows(const NBitsMatrix& matrix, const float* a, int64_t first, int64_t last, void* rows);
// Columns [first, last) of y; `first` is a multiple of kColumns.
void nbits_multiply_panels(const NBitsMatrix& matrix, const void* rows, int64_t count, const float* bias,
                           float* y, int64_t y_stride, int64_t first, int64_t last, void* scratch);

}  // namespace plimsoll::kernels
