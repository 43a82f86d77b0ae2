// Linear quantization of runs of floats that share a scale.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

struct FloatRange {
  float least = 0, most = 0;
};
// Of the elements and zero. NaN is passed over.
FloatRange range_with_zero(const float* x, int64_t count, int threads);

// y = saturate(round(x / scale) + zero_point) in [least, least + 255], half to even; `least` is -128 or 0.
void quantize_8(const float* x, int64_t count, float scale, int32_t zero_point, int32_t least, uint8_t* y,
                int threads);
// y = (x - zero_point) * scale
void dequantize_8(const uint8_t* x, bool is_signed, int64_t count, float scale, int32_t zero_point, float* y,
                  int threads);

}  // namespace plimsoll::kernels
