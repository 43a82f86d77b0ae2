// ConvInteger, QLinearConv and FusedQLinearConv: convolution of 8-bit integers with zero points, any number
// of spatial dimensions.
//
// Images are channels last, or copied so. Rows of the product, the pixels that a kernel sees, are put
// together as the product asks for them, a block of rows at a time. Depthwise planes have a kernel of their
// own.
#pragma once

#include "kernels/int_depthwise.h"
#include "kernels/int_gemm.h"
#include "ops/conv_common.h"

namespace plimsoll {

struct IntegerConvInputs {
  size_t x = 0, w = 1, x_zero = 2, w_zero = 3;
};

struct IntegerConv {
  const Window* window = nullptr;
  int64_t groups = 1, in_c = 0, out_c = 0, taps = 1;  // channels of one group
  bool depthwise = false;                             // of a line or a plane
  kernels::IntDepthwiseShape plane;
  bool packed = false;
  int64_t group_bytes = 0;  // of packed weights
  // Offsets in scratch. x, y: an image, channels last.
  int64_t packed_at = 0, x_at = 0, y_at = 0, w_zeros_at = 0, working_at = 0;
  int64_t in_pixels = 0, out_pixels = 0;
};

// Output 0 in this type.
void infer_integer_conv(InferContext& c, const IntegerConvInputs& in, ElementType output);
IntegerConv select_integer_conv(SelectContext& c, const IntegerConvInputs& in);
void pack_integer_conv(const PackContext& c, const IntegerConv& choice);
// Packed weights: as they are given, or packed into scratch now.
const std::byte* packed_conv_weights(const RunContext& c, const IntegerConvInputs& in,
                                     const IntegerConv& choice);
// `finish`: bias, scales and addend, for all channels and of the first image; zero points of W are taken from
// its input.
void run_integer_conv(const RunContext& c, const IntegerConvInputs& in, const IntegerConv& choice,
                      const kernels::IntGemmFinish& finish);
Cost cost_integer_conv(const NodeContext& c, const IntegerConvInputs& in);

}  // namespace plimsoll
