#include "kernels/block_dequantize.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/block_dequantize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

// Plain loops: the compiler makes vectors of them for each target.
template <int bits>
void dequantize_as(const uint8_t* HWY_RESTRICT x, int64_t count, float scale, float zero,
                   float* HWY_RESTRICT y) {
  constexpr int64_t kPerByte = 8 / bits;
  constexpr int kMask = (1 << bits) - 1;
  const int64_t bytes = count / kPerByte;
  for (int64_t i = 0; i < bytes; ++i) {
    const int byte = x[i];
    for (int64_t k = 0; k < kPerByte; ++k)
      y[i * kPerByte + k] = (static_cast<float>((byte >> (k * bits)) & kMask) - zero) * scale;
  }
  for (int64_t i = bytes * kPerByte; i < count; ++i)
    y[i] = (static_cast<float>((x[i / kPerByte] >> (i % kPerByte * bits)) & kMask) - zero) * scale;
}

float dot_in_lanes(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, int64_t count) {
  constexpr int64_t kLanes = 64;
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) lanes[k] += a[i + k] * b[i + k];
  }
  float sum = 0;
  for (; i < count; ++i) sum += a[i] * b[i];
  for (float lane : lanes) sum += lane;
  return sum;
}

void dequantize_any(const uint8_t* x, int bits, int64_t count, float scale, float zero, float* y) {
  if (bits == 4) return dequantize_as<4>(x, count, scale, zero, y);
  if (bits == 8) return dequantize_as<8>(x, count, scale, zero, y);
  dequantize_as<2>(x, count, scale, zero, y);
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
namespace {
HWY_EXPORT(dequantize_any);
HWY_EXPORT(dot_in_lanes);
}  // namespace

float dot_product(const float* a, const float* b, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(dot_in_lanes)(a, b, count);
}

void dequantize_bits(const uint8_t* x, int bits, int64_t count, float scale, float zero, float* y) {
  HWY_DYNAMIC_DISPATCH(dequantize_any)(x, bits, count, scale, zero, y);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
