// Rows against rows: what linear models and support vectors are made of. Nothing here allocates or throws.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

// y[i, j] = x[i, :] . w[j, :] + (bias ? bias[j] : 0), for `rows` rows of x and `targets` of w, all of
// `features` elements; y has `targets` columns.
void inner_products_f32(const float* x, int64_t rows, const float* w, int64_t targets, int64_t features,
                        const float* bias, float* y);
// y[i, j] = sum of (x[i, :] - w[j, :])^2
void squared_distances_f32(const float* x, int64_t rows, const float* w, int64_t targets, int64_t features,
                           float* y);

}  // namespace plimsoll::kernels
