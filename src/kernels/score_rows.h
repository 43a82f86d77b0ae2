#pragma once

#include <cstdint>

namespace plimsoll::kernels {

// Rows of scores, `stride` apart, become exp(score + mask - the row's largest of these); `factors` get one
// over each row's sum. Rows of the mask are `mask_stride` apart, which may be 0; null: none.
void score_rows_f32(float* scores, int64_t rows, int64_t cols, int64_t stride, const float* mask,
                    int64_t mask_stride, float* factors);
// Each row times its factor.
void scale_rows_f32(float* y, int64_t rows, int64_t cols, int64_t stride, const float* factors);

}  // namespace plimsoll::kernels
