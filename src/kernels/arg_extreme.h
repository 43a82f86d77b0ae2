// Where the largest or smallest elements of float matrices are. A NaN counts as beyond all others.
#pragma once

#include <cstdint>

#include "kernels/storage.h"

namespace plimsoll::kernels {

struct ArgExtreme {
  bool largest = true;
  bool last = false;  // of equal elements the last
};

// T is float, double, Float16 or BFloat16.
// y[r] = the place in x[r, :], which is not empty.
template <class T>
void arg_rows(const ArgExtreme& f, const T* x, int64_t rows, int64_t cols, int64_t* y);

// y[c] = the place in x[:, c], for rows that are `stride` apart. 0 < rows < 2^31.
template <class T>
void arg_columns(const ArgExtreme& f, const T* x, int64_t rows, int64_t cols, int64_t stride, int64_t* y);

}  // namespace plimsoll::kernels
