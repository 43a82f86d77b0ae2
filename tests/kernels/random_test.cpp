#include "kernels/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace plimsoll {
namespace {

using kernels::RandomStream;

// The known answers of Random123, the authors' own library.
TEST(Random, IsPhilox) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(kernels::random_block({0, 0}, 0), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(kernels::random_block({~uint64_t{0}, ~uint64_t{0}}, ~uint64_t{0}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(kernels::random_block({0x299f31d0a4093822, 0x0370734413198a2e}, 0x85a308d3243f6a88),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

template <typename T>
std::vector<T> draw(void (*f)(const RandomStream&, int64_t, int64_t, T*), int64_t first, int64_t count) {
  std::vector<T> numbers(static_cast<size_t>(count));
  f({42, 7}, first, count, numbers.data());
  return numbers;
}

// An element depends on its index alone, not on the piece it is drawn with.
template <typename T>
void check_pieces(void (*f)(const RandomStream&, int64_t, int64_t, T*)) {
  const std::vector<T> all = draw(f, 0, 100);
  for (int64_t first = 0; first < 9; ++first) {
    const std::vector<T> piece = draw(f, first, 31);
    for (size_t i = 0; i < piece.size(); ++i) EXPECT_EQ(piece[i], all[static_cast<size_t>(first) + i]);
  }
}

TEST(Random, DependsOnTheIndexAlone) {
  check_pieces<float>(kernels::random_uniform);
  check_pieces<double>(kernels::random_uniform);
  check_pieces<float>(kernels::random_normal);
  check_pieces<double>(kernels::random_normal);
}

struct Moments {
  double mean = 0, variance = 0, fourth = 0;
};
template <typename T>
Moments moments(const std::vector<T>& numbers) {
  Moments m;
  const auto n = static_cast<double>(numbers.size());
  for (T x : numbers) m.mean += static_cast<double>(x) / n;
  for (T x : numbers) {
    const double d = static_cast<double>(x) - m.mean;
    m.variance += d * d / n;
    m.fourth += d * d * d * d / n;
  }
  return m;
}

constexpr int64_t kCount = 200000;

template <typename T>
void check_uniform() {
  const std::vector<T> numbers = draw<T>(kernels::random_uniform, 0, kCount);
  for (T x : numbers) ASSERT_TRUE(x >= 0 && x < 1);
  const Moments m = moments(numbers);
  EXPECT_NEAR(m.mean, 0.5, 5 * std::sqrt(1.0 / 12 / kCount));
  EXPECT_NEAR(m.variance, 1.0 / 12, 5 * std::sqrt(1.0 / 180 / kCount));
}

template <typename T>
void check_normal() {
  const Moments m = moments(draw<T>(kernels::random_normal, 0, kCount));
  EXPECT_NEAR(m.mean, 0, 5 / std::sqrt(kCount));
  EXPECT_NEAR(m.variance, 1, 5 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(m.fourth, 3, 5 * std::sqrt(96.0 / kCount));
}

TEST(Random, HasTheRightDistribution) {
  check_uniform<float>();
  check_uniform<double>();
  check_normal<float>();
  check_normal<double>();
}

}  // namespace
}  // namespace plimsoll
