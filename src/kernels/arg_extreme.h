// Where the largest or smallest elements of float matrices are. A NaN counts as beyond all others.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

struct ArgExtreme {
  bool largest = true;
  bool last = false;  // of equal elements the last
};

// y[r] = the place in x[r, :], which is not empty.
void arg_rows_f32(const ArgExtreme& f, const float* x, int64_t rows, int64_t cols, int64_t* y);

// y[c] = the place in x[:, c], for rows that are `stride` apart. 0 < rows < 2^31.
void arg_columns_f32(const ArgExtreme& f, const float* x, int64_t rows, int64_t cols, int64_t stride,
                     int64_t* y);

}  // namespace plimsoll::kernels
