// QLinearAdd and QLinearMul.
#pragma once

#include "ops/elementwise.h"
#include "ops/qlinear.h"

namespace plimsoll {

inline constexpr size_t kQlA = 0, kQlAScale = 1, kQlAZero = 2, kQlB = 3, kQlBScale = 4, kQlBZero = 5,
                        kQlCScale = 6, kQlCZero = 7;

void infer_qlinear_binary(InferContext& c);

template <typename F>
void run_qlinear_binary(const RunContext& c, F f) {
  const TensorView &a = c.inputs[kQlA], &b = c.inputs[kQlB], &y = c.outputs[0];
  const DequantizeTable a_table(a.type, read_quantization(c, kQlAScale, kQlAZero));
  const DequantizeTable b_table(b.type, read_quantization(c, kQlBScale, kQlBZero));
  const Quantization to = read_quantization(c, kQlCScale, kQlCZero);
  const kernels::Broadcast plan(y.dims, {a.dims, b.dims});
  plan.for_each(c.threads, [&](const kernels::BroadcastBlock& s) {
    for (int64_t r = 0; r < s.rows; ++r) {
      const uint8_t* row_a = a.as<uint8_t>() + s.offset[0] + r * s.row_stride[0];
      const uint8_t* row_b = b.as<uint8_t>() + s.offset[1] + r * s.row_stride[1];
      uint8_t* row_y = y.as<uint8_t>() + s.output + r * s.output_row;
      for (int64_t i = 0; i < s.cols; ++i)
        row_y[i] = quantize_byte(y.type, to,
                                 f(a_table[row_a[i * s.col_stride[0]]], b_table[row_b[i * s.col_stride[1]]]));
    }
  });
}

}  // namespace plimsoll
