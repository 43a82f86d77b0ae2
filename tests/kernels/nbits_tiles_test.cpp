#include "kernels/nbits_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

namespace plimsoll::kernels {
namespace {

// To the nearest, half to even.
double bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<double>(std::bit_cast<float>((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u));
}

struct Free {
  void operator()(void* p) const { std::free(p); }
};
std::unique_ptr<void, Free> aligned(int64_t bytes) {
  return std::unique_ptr<void, Free>(std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64)));
}

struct Shape {
  int64_t rows, k, n;
  int bits;
  int64_t block;
};

// What both factors are rounded to is known, so that sums alone differ.
void check(const Shape& s) {
  SCOPED_TRACE(testing::Message() << s.rows << " x " << s.k << " x " << s.n << ", bits " << s.bits);
  std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  NBitsMatrix m;
  m.k = s.k, m.n = s.n, m.bits = s.bits, m.block = s.block;
  std::vector<uint8_t> data(static_cast<size_t>(s.n * m.blocks() * s.block * s.bits / 8));
  for (uint8_t& byte : data) byte = static_cast<uint8_t>(generator());
  std::vector<float> scales(static_cast<size_t>(s.n * m.blocks())), a(static_cast<size_t>(s.rows * s.k)),
      bias(static_cast<size_t>(s.n)), y(static_cast<size_t>(s.rows * s.n), NAN);
  for (std::vector<float>* list : {&scales, &a, &bias}) {
    for (float& x : *list) x = normal(generator);
  }
  m.data = data.data(), m.scales = scales.data();
  const auto rounded = aligned((s.rows + 31) / 32 * 32 * NBitsTilesScratch::row_bytes(s.k));
  const auto scratch = aligned(NBitsTilesScratch::task_bytes(s.k));
  nbits_round_rows(s.k, a.data(), 0, s.rows, rounded.get());
  nbits_multiply_tiles(m, rounded.get(), s.rows, bias.data(), y.data(), s.n, 0, s.n, scratch.get());
  for (int64_t row = 0; row < s.rows; ++row) {
    for (int64_t col = 0; col < s.n; ++col) {
      double sum = bias[static_cast<size_t>(col)], size = std::fabs(sum);
      for (int64_t i = 0; i < s.k; ++i) {
        const int64_t bit = (col * m.blocks() * s.block + i) * s.bits;
        const int q = (data[static_cast<size_t>(bit / 8)] >> (bit % 8)) & ((1 << s.bits) - 1);
        const float w = static_cast<float>(q - (1 << (s.bits - 1))) *
                        scales[static_cast<size_t>(col * m.blocks() + i / s.block)];
        const double product = bfloat16(a[static_cast<size_t>(row * s.k + i)]) * bfloat16(w);
        sum += product, size += std::fabs(product);
      }
      EXPECT_NEAR(y[static_cast<size_t>(row * s.n + col)], sum, 1e-5 * size) << row << ", " << col;
    }
  }
}

TEST(NBitsTiles, AgreeWithSumsOfRoundedFactors) {
  if (!nbits_has_tiles()) GTEST_SKIP() << "this machine has no AMX-BF16";
  for (int bits : {2, 4, 8}) {
    check({33, 64, 32, bits, 16});
    check({1, 96, 33, bits, 32});
    check({70, 45, 7, bits, 32});
    check({64, 288, 65, bits, 64});
  }
}

}  // namespace
}  // namespace plimsoll::kernels
