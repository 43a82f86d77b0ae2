// Gradients of softmax and of its logarithm, from their result: y * (dy - sum(y * dy)), or
// dy - exp(y) * sum(dy). For float, double, Float16 and BFloat16, which are computed in float.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

// Of each row; dx may be y or dy.
template <class T>
void softmax_gradient_rows(bool logarithm, const T* y, const T* dy, T* dx, int64_t rows, int64_t cols);
// Of each of `cols` columns of matrices whose rows are `stride` apart; dx may be y or dy.
template <class T>
void softmax_gradient_columns(bool logarithm, const T* y, const T* dy, T* dx, int64_t rows, int64_t cols,
                              int64_t stride);

}  // namespace plimsoll::kernels
