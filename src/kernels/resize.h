// Resampling of one or two axes of a tensor, whose other axes are collapsed around them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/storage.h"

namespace plimsoll::kernels {

// Position i of the output is the sum over taps t of weight[t * out + i] * input[index[t * out + i]].
struct ResizeAxis {
  int64_t in = 1;
  int64_t out = 1;
  int64_t taps = 1;
  const int32_t* index = nullptr;  // inside the axis
  const float* weight = nullptr;
};

// (outer, rows.in, middle, columns.in, inner) -> (outer, rows.out, middle, columns.out, inner), row-major.
// NCHW has inner 1, NHWC has the channels there.
struct ResizeShape {
  int64_t outer = 1;
  ResizeAxis rows;
  int64_t middle = 1;
  ResizeAxis columns;
  int64_t inner = 1;
};

// Scratch of each thread: an input row of middle * columns.in * inner elements, as they are computed in, if
// rows are blended or elements have 16 bits; in 16 bits an output row besides. Weights are of floats.
void resize_linear(const ResizeShape& shape, const float* in, float* out, float* scratch, int threads);
void resize_linear(const ResizeShape& shape, const double* in, double* out, double* scratch, int threads);
void resize_linear(const ResizeShape& shape, const Float16* in, Float16* out, float* scratch, int threads);
void resize_linear(const ResizeShape& shape, const BFloat16* in, BFloat16* out, float* scratch, int threads);
// Bytes become bytes: round((number - from_zero) * factor) + to_zero, half to even, saturated. Scratch of
// each thread: an input row and an output row of floats.
struct ResizeBytes {
  bool is_signed = false;
  int32_t from_zero = 0, to_zero = 0;
  float factor = 1;
};
void resize_linear(const ResizeShape& shape, const ResizeBytes& bytes, const uint8_t* in, uint8_t* out,
                   float* scratch, int threads);
// One tap per position; elements of `width` bytes.
void resize_nearest(const ResizeShape& shape, const std::byte* in, std::byte* out, size_t width, int threads);

}  // namespace plimsoll::kernels
