// QLinearAdd and QLinearMul.
#pragma once

#include "kernels/byte_arithmetic.h"
#include "ops/elementwise.h"
#include "ops/layout.h"
#include "ops/qlinear.h"

namespace plimsoll {

inline constexpr size_t kQlA = 0, kQlAScale = 1, kQlAZero = 2, kQlB = 3, kQlBScale = 4, kQlBZero = 5,
                        kQlCScale = 6, kQlCZero = 7;

void infer_qlinear_binary(InferContext& c);
void layout_qlinear_binary(LayoutContext& c);

// f(operands with their zero points, how many, y), of runs.
template <typename F>
void run_qlinear_binary(const RunContext& c, F f) {
  const TensorView &a = c.inputs[kQlA], &b = c.inputs[kQlB], &y = c.outputs[0];
  kernels::ByteOperands x;
  x.a_zero = read_quantization(c, kQlAScale, kQlAZero).zero;
  x.b_zero = read_quantization(c, kQlBScale, kQlBZero).zero;
  x.zero = read_quantization(c, kQlCScale, kQlCZero).zero;
  x.is_signed = y.type == ElementType::kInt8;
  const kernels::Broadcast plan(y.dims, {a.dims, b.dims});
  plan.for_each(c.threads, [&](const kernels::BroadcastBlock& s) {
    kernels::ByteOperands row = x;
    row.a_stride = s.col_stride[0], row.b_stride = s.col_stride[1];
    for (int64_t r = 0; r < s.rows; ++r) {
      row.a = a.as<uint8_t>() + s.offset[0] + r * s.row_stride[0];
      row.b = b.as<uint8_t>() + s.offset[1] + r * s.row_stride[1];
      f(row, s.cols, y.as<uint8_t>() + s.output + r * s.output_row);
    }
  });
}

inline float scale_at(const RunContext& c, size_t input) {
  return *c.inputs[input].as<float>();
}

}  // namespace plimsoll
