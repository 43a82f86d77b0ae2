// What rewrites of quantized models look for: values behind DequantizeLinear, and QuantizeLinear behind
// values.
#pragma once

#include "optimize/editor.h"
#include "optimize/match.h"

namespace plimsoll {

// An integer tensor and how it means floats. The scale is a constant of floats; `zero` may be null.
struct QuantizedValue {
  Edge *q = nullptr, *scale = nullptr, *zero = nullptr;
  int64_t axis = 0;  // of scales, where there are several; not negative
  explicit operator bool() const { return q != nullptr; }
  ElementType type() const { return q->facts.type.type; }
  bool is_whole() const;  // one scale for all of it
};

bool is_byte(ElementType type);

// The 8-bit value that DequantizeLinear makes this float of; none if it is made in another way.
QuantizedValue dequantized(const Edge* edge);
// Likewise with one scale for all.
QuantizedValue whole_dequantized(const Edge* edge);
// The output of a QuantizeLinear with one constant scale, which makes 8 bits of floats.
QuantizedValue quantized(const Node* node);
// The QuantizeLinear that is all who uses the value; null if there is none.
Node* only_quantizer(const Edge& edge, const Editor& editor);

// The same scale and zero point, in the same type.
bool same_quantization(const QuantizedValue& a, const QuantizedValue& b);
float scale_of(const QuantizedValue& value);
int32_t zero_of(const QuantizedValue& value);
// The zero point as an input, made where there is none.
Edge* zero_edge(const QuantizedValue& value, Editor& editor);

}  // namespace plimsoll
