// Convolution in narrow groups, each with as many output as input channels: a vector of output channels
// holds several groups, or a part of one, and the input channels of a tap are spread over their groups, so
// that no lane idles. Part of conv.h, which says what is promised and calls this where it fits. Of float.
#pragma once

#include "kernels/conv.h"

namespace plimsoll::kernels {

bool is_narrow_group_conv(const ConvShape& shape);
size_t conv_narrow_packed_bytes(const ConvShape& shape);
void conv_narrow_pack(const ConvShape& shape, const ConvWeights<>& weights, float* packed);
// Strides of the output are set; needs no scratch.
void conv_narrow(const ConvShape& shape, const float* x, const float* packed, float* y,
                 const ConvEpilogue<>& epilogue, int threads);

}  // namespace plimsoll::kernels
