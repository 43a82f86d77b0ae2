// What is looked up by bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "each_target.h"
#include "kernels/byte_table.h"
#include "kernels/quantize.h"
#include "kernels/storage.h"

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

// What the 16-bit types do in one step, in several.
template <typename Half>
void expect_halves_go_through_floats(const std::vector<float>& numbers, float scale) {
  const auto count = static_cast<int64_t>(numbers.size());
  std::vector<Half> x(numbers.size()), quotients(numbers.size()), back(numbers.size());
  std::vector<float> wide(numbers.size()), quotient(numbers.size());
  narrow(numbers.data(), x.data(), count);
  widen(x.data(), wide.data(), count);
  for (size_t i = 0; i < wide.size(); ++i) quotient[i] = wide[i] / scale;
  narrow(quotient.data(), quotients.data(), count);
  widen(quotients.data(), quotient.data(), count);
  std::vector<uint8_t> bytes(numbers.size() + 1, 77), expected(numbers.size());
  quantize_8(quotient.data(), count, 1.0f, 3, -128, expected.data(), 1);
  quantize_8(x.data(), count, scale, 3, -128, bytes.data(), 1);
  for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(bytes[i], expected[i]) << numbers[i];
  EXPECT_EQ(bytes.back(), 77);

  dequantize_8(expected.data(), true, count, scale, 3, wide.data(), 1);
  narrow(wide.data(), x.data(), count);
  back.push_back(x[0]);
  dequantize_8(expected.data(), true, count, scale, 3, back.data(), 1);
  for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(back[i].bits, x[i].bits) << int{expected[i]};
  EXPECT_EQ(back.back().bits, x[0].bits);
}

TEST(QuantizedHalves, AreTheFloatsRounded) {
  std::vector<float> numbers = {0.0f, -0.0f, 65504.0f, -65504.0f, INFINITY, -INFINITY, NAN};
  std::mt19937 generator(5);
  while (numbers.size() < 99) numbers.push_back((static_cast<float>(generator() % 20001) - 10000) * 0.0013f);
  for_each_target([&] {
    for (float scale : {0.0625f, 0.1f, 1e-5f}) {
      expect_halves_go_through_floats<Float16>(numbers, scale);
      expect_halves_go_through_floats<BFloat16>(numbers, scale);
    }
  });
}

}  // namespace
}  // namespace plimsoll::kernels
