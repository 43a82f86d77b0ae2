// Depthwise convolution of 8-bit integers over one channels-last image of two dimensions: every channel has
// its own kernel. Exact, as int_gemm is; weights are packed ahead, in a format of the instruction set.
#pragma once

#include "kernels/int_gemm.h"

namespace plimsoll::kernels {

struct IntDepthwiseShape {
  int64_t channels = 0;
  int64_t in_h = 1, in_w = 0, out_h = 1, out_w = 0;
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0;
};

struct IntDepthwiseInput {
  const void* x = nullptr;
  bool is_signed = false;
  int32_t zero_point = 0;
};

// Names the packed format.
int int_depthwise_format();
size_t int_depthwise_packed_bytes(int64_t channels, int64_t kernel_h, int64_t kernel_w);
// `w`: [channels][kernel_h][kernel_w], at any alignment.
void int_depthwise_pack(int64_t channels, int64_t kernel_h, int64_t kernel_w, const void* w, bool is_signed,
                        void* packed);

// Does not depend on the sizes of the images.
int64_t int_depthwise_scratch_bytes(const IntDepthwiseShape& shape, int threads);

// `y`: [out_h][out_w][channels], apart from x; `scratch` is aligned to 64. The finish has no addend.
void int_depthwise(const IntDepthwiseShape& shape, const IntDepthwiseInput& x, const void* packed_w,
                   IntGemmResult type, const IntGemmFinish& finish, void* y, void* scratch, int threads);

}  // namespace plimsoll::kernels
