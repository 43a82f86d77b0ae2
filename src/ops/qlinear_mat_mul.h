// QLinearMatMul of ONNX, and QLinearMatMulAdd of ours, which adds bytes to the result.
#pragma once

#include "ops/integer_product.h"

namespace plimsoll {

// A, scale, zero point; B likewise; Y's scale and zero point. Of QLinearMatMulAdd: Z, of the shape of Y or
// one row of it, its scale and zero point; scale and zero point of the sum of Y and Z, which is the output
// then.
inline constexpr size_t kQMatMulZ = 8, kQMatMulZScale = 9, kQMatMulZZero = 10, kQMatMulSumScale = 11,
                        kQMatMulSumZero = 12;

void infer_qlinear_mat_mul(InferContext& c);
const void* select_qlinear_mat_mul(SelectContext& c);
void pack_qlinear_mat_mul(const PackContext& c);
void run_qlinear_mat_mul(const RunContext& c);
Cost cost_qlinear_mat_mul(const NodeContext& c);

}  // namespace plimsoll
