// Elements of 8 bits and less that C++ has no type for: float8 in its variants, float4, and integers of 2 and
// 4 bits, several of which share a byte, the first in its lowest bits.
#pragma once

#include "tensor/element_type.h"

namespace plimsoll {

bool is_small_float(ElementType type);    // float8 and float4
bool is_small_integer(ElementType type);  // of 2 and 4 bits

// What a conversion to a small float does with what it cannot hold (Cast's tables).
enum class E8M0Rounding : uint8_t { kUp, kDown, kNearest };
struct SmallFloatRules {
  bool saturate = true;
  bool saturate_infinity = true;  // the FNUZ types before opset 24 make NaN of it, saturating or not
  E8M0Rounding rounding = E8M0Rounding::kUp;
};

// The element with these bits. Exact.
float decode_small_float(ElementType type, unsigned bits);
// Half to even.
unsigned encode_small_float(ElementType type, double value, const SmallFloatRules& rules);
// All patterns of a type at once: 256 or 16 of them.
void decode_table(ElementType type, float* table);

// Element i of a tensor whose elements share bytes.
inline unsigned packed_bits(const std::byte* data, int bits, int64_t i) {
  const int64_t per_byte = 8 / bits;
  return (std::to_integer<unsigned>(data[i / per_byte]) >> (i % per_byte * bits)) & ((1u << bits) - 1);
}
inline void set_packed_bits(std::byte* data, int bits, int64_t i, unsigned value) {
  const int64_t per_byte = 8 / bits;
  const auto shift = static_cast<unsigned>(i % per_byte * bits);
  const unsigned mask = (1u << bits) - 1;
  const unsigned old = std::to_integer<unsigned>(data[i / per_byte]);
  data[i / per_byte] = static_cast<std::byte>((old & ~(mask << shift)) | ((value & mask) << shift));
}
// The bits of a signed element as a number.
inline int sign_extended(unsigned value, int bits) {
  const unsigned sign = 1u << (bits - 1);
  return static_cast<int>(value ^ sign) - static_cast<int>(sign);
}
// The integer behind element i, of 2, 4, 8, 16 or 32 bits.
int32_t integer_at(ElementType type, const std::byte* data, int64_t i);
// Writes `count` elements with these bits; the bits behind them become zero.
void fill_packed(std::byte* data, int bits, int64_t count, unsigned value);
// The bits behind the last element become zero, as ONNX has it.
void clear_padding_bits(std::byte* data, int bits, int64_t count);

}  // namespace plimsoll
