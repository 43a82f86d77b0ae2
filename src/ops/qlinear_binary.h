// QLinearAdd and QLinearMul.
#pragma once

#include "kernels/quantize.h"
#include "ops/elementwise.h"
#include "ops/layout.h"
#include "ops/qlinear.h"

namespace plimsoll {

inline constexpr size_t kQlA = 0, kQlAScale = 1, kQlAZero = 2, kQlB = 3, kQlBScale = 4, kQlBZero = 5,
                        kQlCScale = 6, kQlCZero = 7;

void infer_qlinear_binary(InferContext& c);
void layout_qlinear_binary(LayoutContext& c);

// `count` elements, or one for all of them.
inline void dequantize_operand(ElementType type, Quantization q, const uint8_t* x, int64_t stride,
                               int64_t count, float* to) {
  kernels::dequantize_8(x, type == ElementType::kInt8, stride == 0 ? 1 : count, q.scale, q.zero, to, 1);
  if (stride == 0) std::fill_n(to + 1, count - 1, to[0]);
}

template <typename F>
void run_qlinear_binary(const RunContext& c, F f) {
  const TensorView &a = c.inputs[kQlA], &b = c.inputs[kQlB], &y = c.outputs[0];
  const Quantization from_a = read_quantization(c, kQlAScale, kQlAZero);
  const Quantization from_b = read_quantization(c, kQlBScale, kQlBZero);
  const Quantization to = read_quantization(c, kQlCScale, kQlCZero);
  const int32_t least = y.type == ElementType::kInt8 ? -128 : 0;
  const kernels::Broadcast plan(y.dims, {a.dims, b.dims});
  plan.for_each(c.threads, [&](const kernels::BroadcastBlock& s) {
    for (int64_t r = 0; r < s.rows; ++r) {
      const uint8_t* row_a = a.as<uint8_t>() + s.offset[0] + r * s.row_stride[0];
      const uint8_t* row_b = b.as<uint8_t>() + s.offset[1] + r * s.row_stride[1];
      uint8_t* row_y = y.as<uint8_t>() + s.output + r * s.output_row;
      constexpr int64_t kChunk = 512;
      float left[kChunk], right[kChunk];
      for (int64_t i = 0; i < s.cols; i += kChunk) {
        const int64_t count = std::min(kChunk, s.cols - i);
        dequantize_operand(a.type, from_a, row_a + i * s.col_stride[0], s.col_stride[0], count, left);
        dequantize_operand(b.type, from_b, row_b + i * s.col_stride[1], s.col_stride[1], count, right);
        for (int64_t k = 0; k < count; ++k) left[k] = f(left[k], right[k]);
        kernels::quantize_8(left, count, to.scale, to.zero, least, row_y + i, 1);
      }
    }
  });
}

}  // namespace plimsoll
