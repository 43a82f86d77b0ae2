// What is looked up by bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "each_target.h"
#include "kernels/byte_table.h"
#include "kernels/quantize.h"

namespace plimsoll::kernels {
namespace {

std::vector<uint8_t> random_bytes(int64_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(generator());
  return bytes;
}

TEST(ByteTable, IsLookedUpExactlyByEveryForm) {
  const std::vector<uint8_t> table = random_bytes(256, 1);
  for_each_form([&] {
    for (int64_t count : {1, 31, 32, 33, 64, 127, 1000}) {
      const std::vector<uint8_t> x = random_bytes(count, 2);
      std::vector<uint8_t> y(x.size() + 1, 77);
      apply_byte_table(x.data(), table.data(), count, y.data(), 1);
      for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], table[x[i]]) << i << " of " << count;
      EXPECT_EQ(y.back(), 77);
    }
  });
}

// Without the rounding of floats the result is known; it may be one step away where that is near a half.
TEST(SoftmaxOfBytes, IsTheDefinitionsByEveryForm) {
  constexpr float kTo = 1.0f / 256;
  for_each_form([&] {
    for (bool is_signed : {false, true}) {
      for (float scale : {0.001f, 0.03f, 0.4f}) {
        for (int64_t count : {1, 7, 8, 16, 33, 128}) {
          const std::vector<uint8_t> x = random_bytes(count, 3);
          std::vector<uint8_t> y(x.size());
          const auto value = [&](size_t i) { return is_signed ? static_cast<int8_t>(x[i]) : x[i]; };
          soften_8(SoftmaxTable(scale), is_signed, x.data(), count, kTo, is_signed ? -128 : 0, y.data());
          int largest = value(0);
          for (size_t i = 0; i < x.size(); ++i) largest = std::max<int>(largest, value(i));
          double sum = 0;
          for (size_t i = 0; i < x.size(); ++i)
            sum += std::exp(static_cast<double>(scale) * (value(i) - largest));
          for (size_t i = 0; i < x.size(); ++i) {
            const double exact = std::exp(static_cast<double>(scale) * (value(i) - largest)) / sum * 256;
            const int found = is_signed ? static_cast<int8_t>(y[i]) + 128 : y[i];
            EXPECT_NEAR(found, std::min(exact, 255.0), 0.5001) << i << " of " << count << ", scale " << scale;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace plimsoll::kernels
