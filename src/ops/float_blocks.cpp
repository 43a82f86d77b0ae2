#include "ops/float_blocks.h"

namespace plimsoll {
namespace {

// A half's exponent and fraction, moved to where a float has them, are the number times 2^-112.
float float_of(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t shifted = static_cast<uint32_t>(half & 0x7fff) << 13;
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(shifted) * 0x1p112f);
  return std::bit_cast<float>((shifted >= 0x0f800000 ? shifted | 0x7f800000 : finite) | sign);
}

uint16_t half_of(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t normal = (magnitude + 0xfff + ((magnitude >> 13) & 1) - 0x38000000) >> 13;
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude < 0x38800000 ? magnitude : 0) + 0.5f) -
      0x3f000000;
  uint32_t result = magnitude < 0x38800000 ? subnormal : normal;
  result = magnitude >= 0x477ff000 ? 0x7c00 : result;
  result = magnitude > 0x7f800000 ? 0x7e00 : result;
  return static_cast<uint16_t>(result | ((bits >> 16) & 0x8000));
}

}  // namespace

void widen_half(const Float16* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = float_of(from[i].bits);
}

void narrow_half(const float* from, Float16* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i].bits = half_of(from[i]);
}

}  // namespace plimsoll
