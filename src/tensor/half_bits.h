// The conversions behind Float16, for loops that must not call a function for each element.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "tensor/element_type.h"

namespace plimsoll {

// Exponent and fraction, moved to where a float has them, are the number times 2^-112.
inline float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t shifted = static_cast<uint32_t>(bits & 0x7fff) << 13;
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(shifted) * 0x1p112f);
  return std::bit_cast<float>((shifted >= 0x0f800000 ? shifted | 0x7f800000 : finite) | sign);
}

// To the nearest, halves to even; NaN stays NaN. Without branches, which data decides.
inline uint16_t float_to_half(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (u >> 16) & 0x8000;
  const uint32_t magnitude = u & 0x7fffffff;
  const uint32_t normal = (magnitude + 0xfff + ((magnitude >> 13) & 1) - 0x38000000) >> 13;
  // Subnormal: the float adder rounds to nearest even.
  const uint32_t least = std::min<uint32_t>(magnitude, 0x38800000);
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(least) + 0.5f) - 0x3f000000;
  uint32_t result = magnitude < 0x38800000 ? small : normal;
  result = magnitude >= 0x477ff000 ? 0x7c00 : result;  // rounds to infinity
  result = magnitude > 0x7f800000 ? 0x7e00 : result;
  return static_cast<uint16_t>(sign | result);
}

// An element as the number that it is computed in.
template <typename T>
T load_inline(const T& element) {
  return element;
}
inline float load_inline(Float16 element) {
  return half_to_float(element.bits);
}
inline float load_inline(BFloat16 element) {
  return static_cast<float>(element);
}

template <typename T>
T store_inline(float value) {
  return T(value);
}
template <>
inline Float16 store_inline<Float16>(float value) {
  Float16 result;
  result.bits = float_to_half(value);
  return result;
}

}  // namespace plimsoll
