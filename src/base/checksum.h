// A checksum against bytes that changed on their way; no protection against
// somebody who means to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plimsoll {

// The sum of a part continues with `seed`. Every word goes through steps that can be undone, so that a change
// within eight bytes always shows; any other is missed once in 2^64. The same on every machine
// (little-endian).
uint64_t checksum(std::span<const std::byte> bytes, uint64_t seed = 0) noexcept;

}  // namespace plimsoll
