// Conversion between element types.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

inline constexpr TypeSet kCastTypes = kNumericTypes | kBoolType | types(ElementType::kString);

// Types and shape of a cast of input 0; integers keep their known elements.
void infer_cast(InferContext& c, ElementType to);
// Input 0 to output 0. Floats round toward zero to integers and lose what is outside (see
// cast_to_integer), integers lose high bits, text is parsed. Throws on text that is not a number.
void run_cast(const RunContext& c);

}  // namespace plimsoll
