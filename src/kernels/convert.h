// Conversions between the element types that real models convert most.
#pragma once

#include <cstdint>

#include "tensor/element_type.h"

namespace plimsoll::kernels {

// Converts `count` elements and answers true; or answers false, having written nothing: there is no kernel
// for these types, or a float has no integer. y may be x where the elements have the same width.
//   f32 <-> f16, bf16, i32, i8, u8;  i32 <-> i64
// Integers lose high bits, floats round to nearest even, or toward zero to integers.
bool convert(ElementType from, const void* x, ElementType to, void* y, int64_t count);

}  // namespace plimsoll::kernels
