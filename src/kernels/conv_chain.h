// Convolutions one behind the other, over channels-last (NHWC) tensors of float, computed by bands of rows:
// what is between them never is in memory as a whole, only the rows that the next one is about to read, which
// stay near the processor. Every element is computed as conv.h and depthwise.h do it, whatever the bands.
//
// Nothing here allocates, owns memory or throws. Results do not depend on the number of threads.
#pragma once

#include <span>

#include "kernels/conv.h"

namespace plimsoll::kernels {

inline constexpr size_t kMostChained = 3;

// One of them: depthwise, or 1x1 with neither strides nor padding. Without dilation; the output is dense.
struct ChainedConv {
  ConvShape shape;  // of one image; what goes in is what comes out of the one before
  bool depthwise = false;
  const void* packed = nullptr;
  const float* bias = nullptr;
  Activation activation;
};

int64_t conv_chain_scratch_bytes(std::span<const ChainedConv> chain, int threads);
// addend: laid out as the output, is the output itself or apart from it, or null; it is added before the last
// activation.
void conv_chain(std::span<const ChainedConv> chain, int64_t batch, const float* x, const float* addend,
                float* y, std::byte* scratch, int threads);

}  // namespace plimsoll::kernels
