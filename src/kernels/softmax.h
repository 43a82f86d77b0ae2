#pragma once

#include <cstdint>

namespace plimsoll::kernels {

// Softmax of each row, or its logarithm. y may be x.
void softmax_rows_f32(bool logarithm, const float* x, float* y, int64_t rows, int64_t cols);
void softmax_rows_f64(bool logarithm, const double* x, double* y, int64_t rows, int64_t cols);

// Softmax of each of `cols` columns of a matrix whose rows are `stride` apart. y may be x.
void softmax_columns_f32(bool logarithm, const float* x, float* y, int64_t rows, int64_t cols,
                         int64_t stride);
void softmax_columns_f64(bool logarithm, const double* x, double* y, int64_t rows, int64_t cols,
                         int64_t stride);

}  // namespace plimsoll::kernels
