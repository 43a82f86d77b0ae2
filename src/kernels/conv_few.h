// Convolution with few output channels: lanes run along the input channels, so that none idles. Part of
// conv.h, which says what is promised and calls this where it fits.
#pragma once

#include "kernels/conv.h"

namespace plimsoll::kernels {

bool is_few_channel_conv(const ConvShape& shape);
// Packed weights are in the type that is computed in: there are few of them.
template <class T>
size_t conv_few_packed_bytes(const ConvShape& shape);
template <class T>
void conv_few_pack(const ConvShape& shape, const ConvWeights<T>& weights, LaneOf<T>* packed);
// Strides of the output are set; needs no scratch.
template <class T>
void conv_few(const ConvShape& shape, const T* x, const LaneOf<T>* packed, T* y,
              const ConvEpilogue<T>& epilogue, int threads);

}  // namespace plimsoll::kernels
