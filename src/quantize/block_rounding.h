// Blocks of weights in 2, 4 or 8 bits, as MatMulNBits takes them.
#pragma once

#include <cstdint>
#include <span>

namespace plimsoll {

struct BlockParameters {
  float scale = 0;
  float zero_point = 0;  // a whole number, but for HQQ
};

// The scale and zero point of unsigned numbers of so many bits. Symmetric: the larger side of the block takes
// the negative numbers, of which there is one more, and the zero point is the middle.
BlockParameters block_parameters(std::span<const float> block, int bits, bool symmetric);
// Half-quadratic quantization: zero points that are not whole, found by turns of shrinking the error and
// moving the zero point.
BlockParameters hqq_parameters(std::span<const float> block, int bits);
// The number of one weight. Halves away from zero, as ONNX Runtime's kernels have it; HQQ's to even.
uint8_t block_number(float weight, const BlockParameters& parameters, int bits);
uint8_t hqq_number(float weight, const BlockParameters& parameters, int bits);

}  // namespace plimsoll
