// The 8-bit floats that arithmetic operators name among their types.
#pragma once

#include "graph/op_def.h"
#include "tensor/small_types.h"

namespace plimsoll {

inline constexpr TypeSet kFloat8Types = types(ElementType::kFloat8E4M3FN, ElementType::kFloat8E4M3FNUZ,
                                              ElementType::kFloat8E5M2, ElementType::kFloat8E5M2FNUZ);

}  // namespace plimsoll
