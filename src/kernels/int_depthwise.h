// Depthwise convolution of 8-bit integers over channels-last images, one output pixel at a time: every
// channel has its own kernel. Exact.
#pragma once

#include "kernels/int_gemm.h"

namespace plimsoll::kernels {

// One place of the kernel that lies inside the image.
struct IntTap {
  int64_t x = 0;  // offset of the pixel's first channel
  int64_t w = 0;  // of the tap's first weight
};

struct IntDepthwise {
  const void* x = nullptr;
  bool x_signed = false;
  int32_t x_zero_point = 0;
  const int16_t* w = nullptr;  // less their zero point
  int64_t channels = 0;
  IntGemmFinish finish;  // zero points of B are not looked at
  IntGemmResult type = IntGemmResult::kInt32;
};

// y: `channels` elements; sums: as many 32-bit numbers of scratch.
void int_depthwise(const IntDepthwise& job, const IntTap* taps, int64_t tap_count, int32_t* sums, void* y);

}  // namespace plimsoll::kernels
