// Depthwise 2-D convolution over channels-last (NHWC) tensors: every channel has its own kernel. The same
// types and promises as conv.h; needs no scratch. Packed weights are in the type that is computed in.
#pragma once

#include <cstddef>

#include "kernels/conv.h"

namespace plimsoll::kernels {

// shape.groups == shape.in_c == shape.out_c, and the output is dense.
template <class T = float>
size_t depthwise_packed_bytes(const ConvShape& shape);
template <class T = float>
void depthwise_pack(const ConvShape& shape, const ConvWeights<T>& weights, void* packed);
template <class T>
void depthwise_as(const ConvShape& shape, const T* x, const void* packed, T* y,
                  const ConvEpilogue<T>& epilogue, int threads);
inline void depthwise(const ConvShape& shape, const float* x, const void* packed, float* y,
                      const ConvEpilogue<>& epilogue, int threads) {
  depthwise_as<float>(shape, x, packed, y, epilogue, threads);
}

}  // namespace plimsoll::kernels
