// The arithmetic of linear quantization, as ONNX Runtime's tool has it: real = scale * (quantized - zero
// point).
#pragma once

#include <optional>
#include <span>

#include "tensor/element_type.h"

namespace plimsoll {

// What a quantized number may be. Reduced: a bit less, for machines whose products of 8 bits saturate.
// Symmetric: the least signed number is left out.
struct IntegerRange {
  int32_t low = 0, high = 255;
};
// Throws kInvalidArgument of a type that is no integer of 4, 8 or 16 bits.
IntegerRange integer_range(ElementType type, bool reduced, bool symmetric);

struct RealRange {
  float low = 0, high = 0;
};

struct LinearParameters {
  float scale = 1;
  int32_t zero_point = 0;
};
// Zero is always in the range, so that it has an exact number. A range that is nothing has scale 1. The scale
// is computed in double and rounded to `real`; `least_range` is what high - low is at least.
LinearParameters linear_parameters(RealRange range, IntegerRange integers, bool symmetric,
                                   ElementType real = ElementType::kFloat, float least_range = 0);
// For uint8: the zero point is `low` where nothing is negative, else the middle.
LinearParameters snapped_parameters(RealRange range, IntegerRange integers, float least_range = 0);

// Writes round-half-even(x / scale) + zero point, held to the whole range of the type, as elements
// `first`... of `out`. Types of 4 bits share bytes: of one tensor only one thread may write.
void quantize_linear(std::span<const float> x, const LinearParameters& parameters, ElementType type,
                     std::byte* out, int64_t first);

// The scale of float8 that gives numbers of this deviation the deviation of all float8 numbers.
float float8_scale(float deviation);

}  // namespace plimsoll
