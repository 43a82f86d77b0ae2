// GPTQ: rounding that makes up for itself. The rows of a weight are rounded one after the other; what a row
// loses on the inputs that calibration saw, the rows after it take over. What tells how is H, the sum of x *
// x^T over all inputs x.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "quantize/block_rounding.h"

namespace plimsoll {

// In place: of H[k x k], of which `damping` times the mean of its diagonal is added to the diagonal, the
// upper triangle U with inverse(H) = U^T * U. Throws kInvalidArgument if H is not the sum of such products.
void invert_and_factor(std::span<double> h, int64_t k, double damping);

struct GptqWeights {
  std::span<float> w;  // [k][width], row after row; what is left of it afterwards is of no use
  int64_t k = 0, width = 0, block = 0;
  int bits = 4;
};
// Rounds the columns of `weights`, of which each block of rows has parameters of its own: `parameters` finds
// them for the rows as they are by then, `store` is told (row, column, number).
struct GptqRules {
  std::function<BlockParameters(std::span<const float> column_block, int64_t block, int64_t column)>
      parameters;
  std::function<void(int64_t row, int64_t column, uint8_t number)> store;
};
void gptq_round(const GptqWeights& weights, std::span<const double> factor, const GptqRules& rules);
// What it takes besides its arguments.
int64_t gptq_scratch_bytes(int64_t block, int64_t width);

}  // namespace plimsoll
