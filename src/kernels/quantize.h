// Linear quantization of runs of floats that share a scale.
#pragma once

#include <cstdint>

#include "tensor/element_type.h"

namespace plimsoll::kernels {

struct FloatRange {
  float least = 0, most = 0;
};
// Of the elements and zero. NaN is passed over.
FloatRange range_with_zero(const float* x, int64_t count, int threads);

// y = saturate(round(x / scale) + zero_point) in [least, least + 255], half to even; `least` is -128 or 0.
// The quotient is rounded to x's type.
void quantize_8(const float* x, int64_t count, float scale, int32_t zero_point, int32_t least, uint8_t* y,
                int threads);
void quantize_8(const Float16* x, int64_t count, float scale, int32_t zero_point, int32_t least, uint8_t* y,
                int threads);
void quantize_8(const BFloat16* x, int64_t count, float scale, int32_t zero_point, int32_t least, uint8_t* y,
                int threads);
// y = (x - zero_point) * scale
void dequantize_8(const uint8_t* x, bool is_signed, int64_t count, float scale, int32_t zero_point, float* y,
                  int threads);
void dequantize_8(const uint8_t* x, bool is_signed, int64_t count, float scale, int32_t zero_point,
                  Float16* y, int threads);
void dequantize_8(const uint8_t* x, bool is_signed, int64_t count, float scale, int32_t zero_point,
                  BFloat16* y, int threads);

// exp(x - largest) of a row of bytes depends on the difference of two bytes alone.
struct SoftmaxTable {
  explicit SoftmaxTable(float scale);
  float coarse[16], fine[16];  // by the four highest and the four lowest bits of that difference
  float values[256];           // their products, by all of it
};
// The softmax of a row, to bytes of the same type. y may be x.
void soften_8(const SoftmaxTable& table, bool is_signed, const uint8_t* x, int64_t count, float scale,
              int32_t zero_point, uint8_t* y);

}  // namespace plimsoll::kernels
