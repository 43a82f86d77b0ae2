// Reductions of matrices of float and double along one side.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

enum class ReduceKind { kSum, kSumSquare, kSumAbs, kMax, kMin, kProduct };

// What a reduction of nothing gives.
float reduce_identity(ReduceKind kind);

// y[r] = reduction of x[r, :]. NaN wins in max and min.
void reduce_rows_f32(ReduceKind kind, const float* x, int64_t rows, int64_t cols, float* y);
void reduce_rows_f64(ReduceKind kind, const double* x, int64_t rows, int64_t cols, double* y);

// y[c] = reduction of x[:, c], for columns that are `stride` apart from row to row. Sums are added in
// groups of 64 rows.
void reduce_columns_f32(ReduceKind kind, const float* x, int64_t rows, int64_t cols, int64_t stride,
                        float* y);
void reduce_columns_f64(ReduceKind kind, const double* x, int64_t rows, int64_t cols, int64_t stride,
                        double* y);

}  // namespace plimsoll::kernels
