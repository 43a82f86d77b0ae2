// The gradient of a 3x3 kernel, stride 1, by Winograd's F(2 x 2, 3 x 3) transposed: a tile of 2 x 2 pixels of
// dY and the 4 x 4 pixels of X that it saw become 16 points each, whose products over all tiles are 16
// matrices of output x input channels instead of 9 products for each of 4 pixels; the sums become 9 taps.
//
// On channels-last tensors of float, in three parts, between which whoever calls multiplies matrices. Nothing
// here allocates, owns memory or throws. Numerics: as F(2 x 2) of winograd.h.
#pragma once

#include "kernels/conv.h"

namespace plimsoll::kernels {

inline constexpr int64_t kWinogradGradientPoints = 16;

// Tiles of all images.
int64_t winograd_gradient_tiles(const ConvShape& shape);

// Elements between the 16 matrices of `count` tiles x `channels`.
int64_t winograd_gradient_stride(int64_t count, int64_t channels);

// Tiles [first, first + count) of X: 16 matrices of count x in_c, each in GEMM's packed format. `zeros` are
// in_c of them.
void winograd_gradient_x(const ConvShape& shape, const float* x, int64_t first, int64_t count,
                         const float* zeros, float* packed, int threads);

// The same tiles of dY, of `channels` output channels from `channel` on: 16 matrices of count x channels, row
// by row. `zeros` are `channels` of them.
void winograd_gradient_dy(const ConvShape& shape, const float* dy, int64_t first, int64_t count,
                          int64_t channel, int64_t channels, const float* zeros, float* to, int threads);

// 16 matrices of channels x in_c, one behind the other, to dW (channels, in_c, 3, 3).
void winograd_gradient_weights(int64_t channels, int64_t in_c, const float* sums, float* dw, int threads);

}  // namespace plimsoll::kernels
