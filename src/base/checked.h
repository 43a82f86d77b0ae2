// Size arithmetic that fails instead of wrapping: sizes come from files and callers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/fail.h"

namespace plimsoll {

// The failures stand elsewhere: this header is in every file, and formatting is slow to compile.
[[noreturn]] void fail_overflow(int64_t a, const char* operation, int64_t b);

inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) fail_overflow(a, "+", b);
  return sum;
}

inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) fail_overflow(a, "x", b);
  return product;
}

// The smallest multiple of `alignment` (a power of two) that is not below `size`.
inline int64_t round_up(int64_t size, int64_t alignment) {
  return checked_add(size, alignment - 1) & ~(alignment - 1);
}

inline int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + ((a % b != 0 && (a < 0) == (b < 0)) ? 1 : 0);
}

inline int64_t floor_div(int64_t a, int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

}  // namespace plimsoll
