// What the bits of the 8-bit floats mean where no arithmetic is needed.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

inline constexpr TypeSet kFloat8Types = types(ElementType::kFloat8E4M3FN, ElementType::kFloat8E4M3FNUZ,
                                              ElementType::kFloat8E5M2, ElementType::kFloat8E5M2FNUZ);

// Only E5M2 has infinities.
inline bool is_float8_infinity(ElementType type, uint8_t bits) {
  return type == ElementType::kFloat8E5M2 && (bits & 0x7f) == 0x7c;
}

inline bool is_float8_nan(ElementType type, uint8_t bits) {
  switch (type) {
    case ElementType::kFloat8E4M3FN:
      return (bits & 0x7f) == 0x7f;
    case ElementType::kFloat8E5M2:
      return (bits & 0x7f) > 0x7c;
    default:  // what would be minus zero
      return bits == 0x80;
  }
}

}  // namespace plimsoll
