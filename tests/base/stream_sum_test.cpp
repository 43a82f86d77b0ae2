#include "base/stream_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <unordered_set>
#include <vector>

namespace plimsoll {
namespace {

using Lane = std::array<uint8_t, 16>;

// Products of polynomials over two elements, modulo AES's.
uint8_t times(uint8_t a, uint8_t b) {
  unsigned product = 0;
  for (unsigned bit = 0; bit < 8; ++bit) product ^= ((b >> bit) & 1u) != 0 ? unsigned{a} << bit : 0;
  for (unsigned bit = 15; bit >= 8; --bit) product ^= ((product >> bit) & 1u) != 0 ? 0x11bu << (bit - 8) : 0;
  return static_cast<uint8_t>(product);
}

uint8_t substitute(uint8_t byte) {
  uint8_t inverse = 0;
  for (int candidate = 1; candidate < 256 && byte != 0; ++candidate) {
    if (times(byte, static_cast<uint8_t>(candidate)) == 1) inverse = static_cast<uint8_t>(candidate);
  }
  uint8_t result = 0x63;
  for (int turn = 0; turn < 5; ++turn) result ^= std::rotl(inverse, turn);
  return result;
}

// FIPS 197, section 5.1: SubBytes, ShiftRows, MixColumns, AddRoundKey. Columns are four bytes.
Lane aes_round(const Lane& state, const Lane& key) {
  static const auto table = [] {
    std::array<uint8_t, 256> all{};
    for (size_t i = 0; i < all.size(); ++i) all[i] = substitute(static_cast<uint8_t>(i));
    return all;
  }();
  Lane result = key;
  for (size_t column = 0; column < 4; ++column) {
    std::array<uint8_t, 4> shifted;
    for (size_t row = 0; row < 4; ++row) shifted[row] = table[state[(column + row) % 4 * 4 + row]];
    for (size_t row = 0; row < 4; ++row)
      result[column * 4 + row] ^=
          static_cast<uint8_t>(times(shifted[row], 2) ^ times(shifted[(row + 1) % 4], 3) ^
                               shifted[(row + 2) % 4] ^ shifted[(row + 3) % 4]);
  }
  return result;
}

Lane mix(Lane state) {
  for (int round = 0; round < 4; ++round) state = aes_round(state, Lane{});
  return state;
}

Lane different(const Lane& a, const Lane& b) {
  Lane result;
  for (size_t i = 0; i < a.size(); ++i) result[i] = a[i] ^ b[i];
  return result;
}

// What the header of stream_sum promises, written down plainly.
uint64_t reference(std::vector<uint8_t> bytes) {
  const uint64_t size = bytes.size();
  const size_t half = bytes.size() / 128 * 64;
  bytes.resize(2 * half + 128);
  std::array<Lane, 8> lanes{};
  for (size_t i = 0; i < lanes.size(); ++i) lanes[i][0] = static_cast<uint8_t>(i + 1);
  const auto absorb = [&](size_t lane, size_t offset) {
    Lane data;
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(offset), data.size(), data.begin());
    lanes[lane] = aes_round(lanes[lane], data);
  };
  for (size_t at = 0; at < half; at += 64) {
    for (size_t i = 0; i < 8; ++i) absorb(i, (i < 4 ? 0 : half) + at + i % 4 * 16);
  }
  for (size_t i = 0; i < 8; ++i) absorb(i, 2 * half + i * 16);
  Lane sum{};
  std::memcpy(sum.data(), &size, sizeof size);
  for (size_t i = 0; i < 4; ++i) sum = mix(different(mix(different(sum, mix(lanes[i]))), mix(lanes[4 + i])));
  std::array<uint64_t, 2> words;
  std::memcpy(words.data(), sum.data(), sizeof words);
  return words[0] ^ words[1];
}

std::vector<uint8_t> some_bytes(size_t count) {
  std::vector<uint8_t> bytes(count);
  uint32_t state = 12345;
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
  return bytes;
}

uint64_t sum_of(const std::vector<uint8_t>& bytes) {
  return stream_sum(std::as_bytes(std::span(bytes)));
}

TEST(StreamSum, IsWhatTheStandardsRoundMakesOfEveryLength) {
  for (const size_t count : {0, 1, 15, 16, 63, 64, 127, 128, 129, 255, 256, 1000, 4096, 10001}) {
    const std::vector<uint8_t> bytes = some_bytes(count);
    EXPECT_EQ(sum_of(bytes), reference(bytes)) << count;
    EXPECT_EQ(stream_sum(std::as_bytes(std::span(bytes)), false), reference(bytes)) << count;
  }
}

TEST(StreamSum, EveryBitShows) {
  for (const size_t count : {1, 17, 128, 300, 1024}) {
    std::vector<uint8_t> bytes = some_bytes(count);
    std::unordered_set<uint64_t> sums = {sum_of(bytes)};
    for (size_t bit = 0; bit < 8 * count; ++bit) {
      bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      EXPECT_TRUE(sums.insert(sum_of(bytes)).second) << count << " bytes, bit " << bit;
      bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    }
  }
}

TEST(StreamSum, ZerosAtTheEndAndPartsThatChangePlacesShow) {
  std::unordered_set<uint64_t> sums;
  for (size_t count = 0; count < 600; ++count)
    EXPECT_TRUE(sums.insert(sum_of(std::vector<uint8_t>(count))).second);
  std::vector<uint8_t> bytes = some_bytes(4096);
  for (size_t part = 0; part + 16 < bytes.size(); part += 16) {
    std::vector<uint8_t> swapped = bytes;
    std::swap_ranges(swapped.begin() + static_cast<ptrdiff_t>(part),
                     swapped.begin() + static_cast<ptrdiff_t>(part) + 16,
                     swapped.begin() + static_cast<ptrdiff_t>((part + 2048) % 4096));
    EXPECT_NE(sum_of(swapped), sum_of(bytes)) << part;
  }
}

}  // namespace
}  // namespace plimsoll
