// Random numbers by counting: element i of a stream is a function of (seed, stream, i) and nothing else, so
// that it does not depend on threads and can be computed again instead of being kept.
#pragma once

#include <array>
#include <cstdint>

namespace plimsoll::kernels {

struct RandomStream {
  uint64_t seed = 0;
  uint64_t number = 0;  // streams of one seed are independent of each other
};

// Philox 4x32 with ten rounds (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3",
// 2011): block `index` of the stream.
std::array<uint32_t, 4> random_block(const RandomStream& stream, uint64_t index);

// Elements first .. first + count - 1 of the stream, in [0, 1): multiples of 2^-24 and 2^-53.
void random_uniform(const RandomStream& stream, int64_t first, int64_t count, float* y);
void random_uniform(const RandomStream& stream, int64_t first, int64_t count, double* y);
// Of mean 0 and variance 1, by Box and Muller.
void random_normal(const RandomStream& stream, int64_t first, int64_t count, float* y);
void random_normal(const RandomStream& stream, int64_t first, int64_t count, double* y);

// Spreads the bits of a number over all 64, so that neighbouring seeds have nothing in common.
constexpr uint64_t mix_bits(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace plimsoll::kernels
