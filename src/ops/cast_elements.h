// Conversion between element types.
#pragma once

#include "graph/op_def.h"
#include "tensor/small_types.h"

namespace plimsoll {

inline constexpr TypeSet kCastTypes =
    kNumericTypes | kBoolType |
    types(ElementType::kString, ElementType::kFloat8E4M3FN, ElementType::kFloat8E4M3FNUZ,
          ElementType::kFloat8E5M2, ElementType::kFloat8E5M2FNUZ, ElementType::kFloat8E8M0,
          ElementType::kFloat4E2M1, ElementType::kInt4, ElementType::kUint4, ElementType::kInt2,
          ElementType::kUint2);

struct CastAttrs {
  ElementType to = ElementType::kUndefined;  // of Cast
  SmallFloatRules rules;
};
// Reads `saturate` and `round_mode`.
void read_cast_rules(AttrContext& c, CastAttrs& attrs);

// Types and shape of a cast of input 0; integers keep their known elements.
void infer_cast(InferContext& c, ElementType to);
// Input 0 to output 0. Floats round toward zero to integers and lose what is outside (see
// cast_to_integer), to those of 2 and 4 bits half to even; integers lose high bits, text is parsed. Throws on
// text that is not a number.
void run_cast(const RunContext& c);

}  // namespace plimsoll
