#include "base/checksum.h"

#include <bit>
#include <cstring>

namespace plimsoll {
namespace {

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;

// A change of any bit of the word changes the sum.
uint64_t mix(uint64_t sum, uint64_t word) noexcept {
  return std::rotl((sum ^ word) * kOdd, 29) * 0xbf58476d1ce4e5b9u + (sum >> 32);
}

}  // namespace

uint64_t checksum(std::span<const std::byte> bytes, uint64_t so_far) noexcept {
  uint64_t sum = so_far ^ kOdd ^ bytes.size();
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    sum = mix(sum, word);
  }
  uint64_t rest = 0;
  if (at < bytes.size()) std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
  return mix(sum, rest);
}

}  // namespace plimsoll
