// Depthwise 2-D convolution over channels-last (NHWC) float tensors: every channel has its own kernel.
// The same promises as conv.h; needs no scratch.
#pragma once

#include <cstddef>

#include "kernels/conv.h"

namespace plimsoll::kernels {

// shape.groups == shape.in_c == shape.out_c, and the output is dense.
size_t depthwise_packed_bytes(const ConvShape& shape);
void depthwise_pack(const ConvShape& shape, const ConvWeights& weights, void* packed);
void depthwise(const ConvShape& shape, const float* x, const void* packed, float* y,
               const ConvEpilogue& epilogue, int threads);

}  // namespace plimsoll::kernels
