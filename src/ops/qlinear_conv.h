// QLinearConv of ONNX, and FusedQLinearConv of ours, which has more of everything.
#pragma once

#include "ops/integer_conv.h"

namespace plimsoll {

// X, scale, zero point; W likewise; Y's scale and zero point; a bias of 32 bits. Of FusedQLinearConv: Z, its
// scale and zero point; scale and zero point of the sum of Y and Z, which is the output then. Without a scale
// of Y the output is of floats.
inline constexpr size_t kQConvXScale = 1, kQConvWScale = 4, kQConvYScale = 6, kQConvYZero = 7, kQConvBias = 8,
                        kQConvZ = 9, kQConvZScale = 10, kQConvZZero = 11, kQConvSumScale = 12,
                        kQConvSumZero = 13;
inline constexpr IntegerConvInputs kQConv = {.x = 0, .w = 3, .x_zero = 2, .w_zero = 5};

// What the bytes of the output are kept within: Relu and Clip.
struct QLinearConvAttrs : ConvAttrs {
  int32_t least = INT32_MIN, most = INT32_MAX;
};

const void* read_qlinear_conv(AttrContext& c);
void infer_qlinear_conv(InferContext& c);
const void* select_qlinear_conv(SelectContext& c);
void pack_qlinear_conv(const PackContext& c);
void run_qlinear_conv(const RunContext& c);
Cost cost_qlinear_conv(const NodeContext& c);

}  // namespace plimsoll
