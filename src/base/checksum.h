// A sum over bytes that tells damage, not intent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plimsoll {

// Of any length; the sum of a part continues with `so_far`.
uint64_t checksum(std::span<const std::byte> bytes, uint64_t so_far = 0) noexcept;

}  // namespace plimsoll
