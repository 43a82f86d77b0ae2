#include "kernels/storage.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/each_target.h"

namespace plimsoll::kernels {
namespace {

template <typename T>
class StorageTest : public testing::Test {};
using HalfTypes = testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(StorageTest, HalfTypes);

// Every bit pattern, from starts that leave tails of every length.
TYPED_TEST(StorageTest, WidensEveryNumber) {
  for_each_target([] {
    std::vector<TypeParam> from(65536);
    for (size_t i = 0; i < from.size(); ++i) from[i].bits = static_cast<uint16_t>(i);
    std::vector<float> to(from.size());
    for (size_t start : {0, 1, 5, 15, 31}) {
      widen(from.data() + start, to.data() + start, static_cast<int64_t>(from.size() - start));
      for (size_t i = start; i < from.size(); ++i) {
        const float expected = static_cast<float>(from[i]);
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(to[i])) << i;
        } else {
          ASSERT_EQ(std::bit_cast<uint32_t>(to[i]), std::bit_cast<uint32_t>(expected)) << i;
        }
      }
    }
  });
}

// Every number, its neighbours, the points halfway between, and anything.
TYPED_TEST(StorageTest, NarrowsToTheNearestEven) {
  std::vector<float> from;
  for (uint32_t i = 0; i < 65536; ++i) {
    TypeParam half;
    half.bits = static_cast<uint16_t>(i);
    const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(half));
    for (uint32_t step : {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u})
      from.push_back(std::bit_cast<float>(bits + step));
  }
  std::mt19937 random(1);
  for (int i = 0; i < 100000; ++i) from.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  for_each_target([&] {
    std::vector<TypeParam> to(from.size());
    narrow(from.data(), to.data(), static_cast<int64_t>(from.size()));
    for (size_t i = 0; i < from.size(); ++i) {
      const TypeParam expected(from[i]);
      if (std::isnan(from[i])) {
        ASSERT_TRUE(std::isnan(static_cast<float>(to[i]))) << from[i];
      } else {
        ASSERT_EQ(to[i].bits, expected.bits) << from[i] << " at " << i;
      }
    }
  });
}

TYPED_TEST(StorageTest, TouchesNothingBehind) {
  for_each_target([] {
    for (int64_t count = 0; count < 40; ++count) {
      std::vector<float> wide(static_cast<size_t>(count) + 1, 7.0f);
      std::vector<TypeParam> half(static_cast<size_t>(count) + 1, TypeParam(3.0f));
      widen(half.data(), wide.data(), count);
      ASSERT_EQ(wide.back(), 7.0f);
      narrow(wide.data(), half.data(), count);
      ASSERT_EQ(static_cast<float>(half.back()), 3.0f);
    }
  });
}

}  // namespace
}  // namespace plimsoll::kernels
