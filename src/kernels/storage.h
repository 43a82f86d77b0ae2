// The element types that float kernels take: what is in memory, and what it is computed in.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tensor/element_type.h"

namespace plimsoll::kernels {

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

template <class T>
using LaneOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Exact. `from` and `to` must not overlap.
void widen(const Float16* from, float* to, int64_t count);
void widen(const BFloat16* from, float* to, int64_t count);
// To the nearest, halves to even; NaN stays NaN. `from` and `to` must not overlap.
void narrow(const float* from, Float16* to, int64_t count);
void narrow(const float* from, BFloat16* to, int64_t count);

}  // namespace plimsoll::kernels
