// Copies of elements that may have less than a byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace plimsoll {

// Elements `from_at` and following of `from` become elements `to_at` and following of `to`; what else is in
// the bytes at the edges stays. Within a byte the first element has the lowest bits. The two do not overlap.
inline void copy_elements(std::byte* to, int64_t to_at, const std::byte* from, int64_t from_at, int64_t count,
                          int64_t bits) {
  int64_t done = 0;
  if (to_at * bits % 8 == 0 && from_at * bits % 8 == 0 && count > 0) {
    const int64_t bytes = count * bits / 8;
    if (bytes > 0) std::memcpy(to + to_at * bits / 8, from + from_at * bits / 8, static_cast<size_t>(bytes));
    done = bytes * 8 / bits;
  }
  if (done == count) return;  // whole bytes, as always of elements that have them
  const auto mask = static_cast<std::byte>((1 << bits) - 1);
  for (int64_t i = done; i < count; ++i) {
    const int64_t source = (from_at + i) * bits, at = (to_at + i) * bits;
    const std::byte value = from[source / 8] >> source % 8 & mask;
    std::byte& byte = to[at / 8];
    byte = (byte & ~(mask << at % 8)) | value << at % 8;
  }
}

}  // namespace plimsoll
