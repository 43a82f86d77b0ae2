#include "base/checksum.h"

#include <array>
#include <bit>
#include <cstring>

namespace plimsoll {
namespace {

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;  // a product with an odd number can be undone

uint64_t absorb(uint64_t state, uint64_t word) {
  return std::rotl((state ^ word) * kOdd, 29);
}

}  // namespace

// Eight chains side by side, because one product waits for the one before. In vectors a product of 64 bits
// takes three of 32: slower.
#ifdef __GNUC__
#ifndef __clang__
__attribute__((optimize("no-tree-vectorize", "no-tree-slp-vectorize")))
#endif
#endif
uint64_t
checksum(std::span<const std::byte> bytes, uint64_t seed) noexcept {
  constexpr size_t kLanes = 8, kStride = kLanes * sizeof(uint64_t);
  std::array<uint64_t, kLanes> state;
  for (size_t lane = 0; lane < kLanes; ++lane) state[lane] = absorb(seed, lane + 1);
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= kStride; left -= kStride, at += kStride) {
    std::array<uint64_t, kLanes> words;
    std::memcpy(words.data(), at, kStride);
    for (size_t lane = 0; lane < kLanes; ++lane) state[lane] = absorb(state[lane], words[lane]);
  }
  std::array<uint64_t, kLanes> rest{};
  if (left > 0) std::memcpy(rest.data(), at, left);
  uint64_t sum = bytes.size();
  for (size_t lane = 0; lane < kLanes; ++lane) sum = absorb(sum, absorb(state[lane], rest[lane]));
  return absorb(sum ^ (sum >> 32), kOdd);
}

}  // namespace plimsoll
