// What the QLinear operators of com.microsoft share: 8-bit tensors with one scale and one zero point each. A
// byte has only 256 values: whatever depends on one element alone is a table.
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/integer_product.h"
#include "ops/linear_quantization.h"

namespace plimsoll {

struct Quantization {
  float scale = 1;
  int32_t zero = 0;
};

// Input `scale` is one float; `zero`, if it is there, one element of the type of input `x`.
void expect_quantization(const InferContext& c, size_t x, size_t scale, size_t zero);
Quantization read_quantization(const RunContext& c, size_t scale, size_t zero);

inline int32_t byte_value(ElementType type, uint8_t byte) {
  return type == ElementType::kInt8 ? static_cast<int8_t>(byte) : byte;
}

// The number behind each byte.
struct DequantizeTable {
  float values[256];
  DequantizeTable(ElementType type, Quantization q) {
    for (int i = 0; i < 256; ++i)
      values[i] = q.scale * static_cast<float>(byte_value(type, static_cast<uint8_t>(i)) - q.zero);
  }
  float operator[](uint8_t byte) const { return values[byte]; }
};

// Half to even; NaN becomes the least.
inline uint8_t quantize_byte(ElementType type, Quantization q, float value) {
  const float least = type == ElementType::kInt8 ? -128.0f : 0.0f;
  const float whole = std::rint(value / q.scale) + static_cast<float>(q.zero);
  return static_cast<uint8_t>(static_cast<int32_t>(whole > least ? std::min(whole, least + 255) : least));
}

// f on the number behind each byte, as bytes again.
struct ByteTable {
  uint8_t values[256];
  template <typename F>
  ByteTable(ElementType type, Quantization from, Quantization to, F f) {
    const DequantizeTable x(type, from);
    for (int i = 0; i < 256; ++i) values[i] = quantize_byte(type, to, f(x.values[i]));
  }
  uint8_t operator[](uint8_t byte) const { return values[byte]; }
};

// X, its scale, zero point, Y's scale, zero point: what operators of one input have.
inline constexpr size_t kUnaryX = 0, kUnaryXScale = 1, kUnaryXZero = 2, kUnaryYScale = 3, kUnaryYZero = 4;
// Types alone.
void expect_qlinear_unary(const InferContext& c);

template <typename F>
void run_byte_table(const RunContext& c, F f) {
  const TensorView& x = c.inputs[kUnaryX];
  const ByteTable table(x.type, read_quantization(c, kUnaryXScale, kUnaryXZero),
                        read_quantization(c, kUnaryYScale, kUnaryYZero), f);
  const int64_t count = x.elements();
  uint8_t* y = c.outputs[0].as<uint8_t>();
  for (int64_t i = 0; i < count; ++i) y[i] = table[x.as<uint8_t>()[i]];
}

}  // namespace plimsoll
