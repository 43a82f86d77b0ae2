// A checksum at the speed of memory for what is large, against bytes that changed on their way; no protection
// against somebody who means to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plimsoll {

// Every 16 bytes, counted from the first, go through steps that can be undone, so that a change of one bit
// always shows until all of it is brought to 64 bits, of which any change is missed once in 2^64. The same on
// every machine (little-endian), with vectors as wide as it has or, for tests, without.
uint64_t stream_sum(std::span<const std::byte> bytes, bool wide = true) noexcept;

}  // namespace plimsoll
