#include "kernels/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/quantize.h"

namespace plimsoll::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> numbers() {
  std::vector<float> x = {0.0f,     -0.0f,  1.0f,     -1.5f,     2.5f,      65504.0f,
                          65520.0f, -1e-7f, 0x1p-24f, kInfinity, -kInfinity};
  for (int i = 0; i < 90; ++i) x.push_back(0.37f * static_cast<float>(i - 40) * static_cast<float>(i));
  return x;
}

// Against the conversions of single elements.
template <typename To>
void check_from_float(const std::vector<float>& x) {
  std::vector<To> y(x.size());
  ASSERT_TRUE(convert(ElementType::kFloat, x.data(), element_type_of<To>(), y.data(),
                      static_cast<int64_t>(x.size())));
  for (size_t i = 0; i < x.size(); ++i) {
    if constexpr (std::is_integral_v<To>) {
      EXPECT_EQ(y[i], static_cast<To>(static_cast<int32_t>(x[i]))) << x[i];
    } else {
      EXPECT_EQ(y[i].bits, To(x[i]).bits) << x[i];
    }
  }
  std::vector<float> back(x.size());
  ASSERT_TRUE(convert(element_type_of<To>(), y.data(), ElementType::kFloat, back.data(),
                      static_cast<int64_t>(x.size())));
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(back[i], static_cast<float>(y[i])) << x[i];
}

TEST(Convert, HalvesAsSingleElements) {
  for_each_target([] {
    check_from_float<Float16>(numbers());
    check_from_float<BFloat16>(numbers());
    const std::vector<float> nan(17, std::nanf(""));
    std::vector<Float16> half(17);
    std::vector<BFloat16> brain(17);
    convert(ElementType::kFloat, nan.data(), ElementType::kFloat16, half.data(), 17);
    convert(ElementType::kFloat, nan.data(), ElementType::kBFloat16, brain.data(), 17);
    for (size_t i = 0; i < 17; ++i) {
      EXPECT_TRUE(std::isnan(static_cast<float>(half[i])));
      EXPECT_TRUE(std::isnan(static_cast<float>(brain[i])));
    }
  });
}

TEST(Convert, TruthIsOne) {
  for_each_target([] {
    std::vector<uint8_t> x;
    for (int i = 0; i < 77; ++i) x.push_back(static_cast<uint8_t>(i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : 200));
    std::vector<float> y(x.size());
    ASSERT_TRUE(convert(ElementType::kBool, x.data(), ElementType::kFloat, y.data(), 77));
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], x[i] != 0 ? 1.0f : 0.0f);
  });
}

TEST(Convert, IntegersAndWhatTheyCannotHold) {
  for_each_target([] {
    std::vector<float> x;
    for (int i = -150; i < 150; ++i) x.push_back(static_cast<float>(i) * 1.7f);
    check_from_float<int32_t>(x);
    check_from_float<int8_t>(x);
    check_from_float<uint8_t>(x);
    for (float wrong : {std::nanf(""), kInfinity, 2147483648.0f, -2147483648.0f}) {
      std::vector<float> y = x;
      y[77] = wrong;
      std::vector<int32_t> whole(x.size(), 9);
      EXPECT_FALSE(convert(ElementType::kFloat, y.data(), ElementType::kInt32, whole.data(), 300));
      EXPECT_EQ(whole, std::vector<int32_t>(x.size(), 9));
    }
    EXPECT_FALSE(convert(ElementType::kDouble, x.data(), ElementType::kFloat, x.data(), 1));
  });
}

TEST(Convert, WideIntegersLoseTheirHighBits) {
  for_each_target([] {
    std::vector<int64_t> x;
    for (int64_t i = 0; i < 40; ++i) x.push_back((i - 20) * 123456789012);
    std::vector<int32_t> y(x.size());
    ASSERT_TRUE(convert(ElementType::kInt64, x.data(), ElementType::kInt32, y.data(), 40));
    std::vector<int64_t> back(x.size());
    ASSERT_TRUE(convert(ElementType::kInt32, y.data(), ElementType::kInt64, back.data(), 40));
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(y[i], static_cast<int32_t>(x[i]));
      EXPECT_EQ(back[i], y[i]);
    }
  });
}

TEST(Quantize, RangeQuantizeAndBack) {
  for_each_target([] {
    for (int64_t count : {0, 1, 15, 16, 100, 70001}) {
      std::vector<float> x;
      for (int64_t i = 0; i < count; ++i) x.push_back(std::sin(static_cast<float>(i)) * 3 + 1);
      float least = 0, most = 0;
      for (float v : x) least = std::min(least, v), most = std::max(most, v);
      const FloatRange range = range_with_zero(x.data(), count, 2);
      EXPECT_EQ(range.least, least);
      EXPECT_EQ(range.most, most);
      std::vector<uint8_t> y(x.size());
      quantize_8(x.data(), count, 0.01f, 3, -128, y.data(), 2);
      std::vector<float> back(x.size());
      dequantize_8(y.data(), true, count, 0.01f, 3, back.data(), 2);
      for (size_t i = 0; i < x.size(); ++i) {
        const float whole = std::min(std::max(std::nearbyint(x[i] / 0.01f) + 3, -128.0f), 127.0f);
        ASSERT_EQ(static_cast<int8_t>(y[i]), static_cast<int8_t>(whole)) << i;
        ASSERT_EQ(back[i], (whole - 3) * 0.01f) << i;
      }
    }
  });
}

}  // namespace
}  // namespace plimsoll::kernels
