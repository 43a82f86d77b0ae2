// Convolution with few output channels: lanes run along the input channels, so that none idles. Part of
// conv.h, which says what is promised and calls this where it fits.
#pragma once

#include "kernels/conv.h"

namespace plimsoll::kernels {

bool is_few_channel_conv(const ConvShape& shape);
size_t conv_few_packed_bytes(const ConvShape& shape);
void conv_few_pack(const ConvShape& shape, const ConvWeights& weights, float* packed);
// Strides of the output are set; needs no scratch.
void conv_few(const ConvShape& shape, const float* x, const float* packed, float* y,
              const ConvEpilogue& epilogue, int threads);

}  // namespace plimsoll::kernels
