#include "kernels/random.h"

#include <cmath>

namespace plimsoll::kernels {
namespace {

// Calls f(i, element of the block that holds it) for every i, `kPerBlock` to a block.
template <int kPerBlock, typename Make, typename Store>
void for_each_element(const RandomStream& stream, int64_t first, int64_t count, Make make, Store store) {
  const int64_t end = first + count;
  for (int64_t i = first; i < end;) {
    const auto elements = make(random_block(stream, static_cast<uint64_t>(i / kPerBlock)));
    for (int64_t k = i % kPerBlock; k < kPerBlock && i < end; ++k, ++i)
      store(i - first, elements[static_cast<size_t>(k)]);
  }
}

float to_unit(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}
double to_unit(uint32_t high, uint32_t low) {
  return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

// The first number is made positive for the logarithm.
template <typename T>
void normal_pair(T u, T v, T smallest, T* pair) {
  const T radius = std::sqrt(T{-2} * std::log(u + smallest));
  const T angle = static_cast<T>(6.283185307179586476925) * v;
  pair[0] = radius * std::cos(angle);
  pair[1] = radius * std::sin(angle);
}

}  // namespace

std::array<uint32_t, 4> random_block(const RandomStream& stream, uint64_t index) {
  constexpr uint64_t kFirst = 0xd2511f53, kSecond = 0xcd9e8d57;
  auto key0 = static_cast<uint32_t>(stream.seed), key1 = static_cast<uint32_t>(stream.seed >> 32);
  auto c0 = static_cast<uint32_t>(index), c1 = static_cast<uint32_t>(index >> 32);
  auto c2 = static_cast<uint32_t>(stream.number), c3 = static_cast<uint32_t>(stream.number >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = kFirst * c0, p1 = kSecond * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ key0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ key1;
    c3 = static_cast<uint32_t>(p0);
    key0 += 0x9e3779b9;
    key1 += 0xbb67ae85;
  }
  return {c0, c1, c2, c3};
}

void random_uniform(const RandomStream& stream, int64_t first, int64_t count, float* y) {
  for_each_element<4>(
      stream, first, count, [](const std::array<uint32_t, 4>& block) { return block; },
      [y](int64_t i, uint32_t bits) { y[i] = to_unit(bits); });
}

void random_uniform(const RandomStream& stream, int64_t first, int64_t count, double* y) {
  for_each_element<2>(
      stream, first, count,
      [](const std::array<uint32_t, 4>& b) {
        return std::array<double, 2>{to_unit(b[0], b[1]), to_unit(b[2], b[3])};
      },
      [y](int64_t i, double value) { y[i] = value; });
}

void random_normal(const RandomStream& stream, int64_t first, int64_t count, float* y) {
  for_each_element<4>(
      stream, first, count,
      [](const std::array<uint32_t, 4>& b) {
        std::array<float, 4> z;
        normal_pair(to_unit(b[0]), to_unit(b[1]), 0x1p-25f, &z[0]);
        normal_pair(to_unit(b[2]), to_unit(b[3]), 0x1p-25f, &z[2]);
        return z;
      },
      [y](int64_t i, float value) { y[i] = value; });
}

void random_normal(const RandomStream& stream, int64_t first, int64_t count, double* y) {
  for_each_element<2>(
      stream, first, count,
      [](const std::array<uint32_t, 4>& b) {
        std::array<double, 2> z;
        normal_pair(to_unit(b[0], b[1]), to_unit(b[2], b[3]), 0x1p-54, z.data());
        return z;
      },
      [y](int64_t i, double value) { y[i] = value; });
}

}  // namespace plimsoll::kernels
