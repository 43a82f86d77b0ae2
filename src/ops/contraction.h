// Sums of products of two strided arrays: what Einsum comes down to.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/parallel.h"

namespace plimsoll {

// One loop: strides in elements of the two operands and the result. A result stride of 0 is a sum.
struct ContractionLoop {
  int64_t size = 1, a = 0, b = 0, o = 0;
};

inline constexpr size_t kMaxContractionLoops = 128;

// Merges loops that continue each other and puts the innermost one where it vectorizes. Returns how many
// loops are left; loops that walk the result come before those that only sum, but for the innermost.
size_t arrange_loops(std::span<ContractionLoop> loops);

// o[...] += a[...] * b[...], or without b, o[...] += a[...]. The result was zeroed before. Integers are given
// as unsigned types, which wrap.
template <typename C>
void contract(std::span<const ContractionLoop> loops, const C* a, const C* b, C* o, int threads);

}  // namespace plimsoll
