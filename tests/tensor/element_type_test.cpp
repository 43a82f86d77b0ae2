#include "tensor/element_type.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plimsoll {

TEST(Float16, EveryBitPatternSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    Float16 half;
    half.bits = static_cast<uint16_t>(bits);
    const float wide = static_cast<float>(half);
    const Float16 back(wide);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(back)));
    } else {
      ASSERT_EQ(back.bits, half.bits) << wide;
    }
  }
}

TEST(Float16, RoundsToNearestEven) {
  EXPECT_EQ(Float16(1.0f + 0x1p-11f).bits, Float16(1.0f).bits);
  EXPECT_EQ(Float16(1.0f + 3 * 0x1p-11f).bits, Float16(1.0f + 0x1p-9f).bits);
  EXPECT_EQ(Float16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Float16(-65519.0f).bits, 0xfbff);
  EXPECT_EQ(Float16(0x1p-25f).bits, 0);
}

TEST(BFloat16, RoundsToNearestEvenAndKeepsNaN) {
  EXPECT_EQ(BFloat16(1.0f + 0x1p-8f).bits, 0x3f80);
  EXPECT_EQ(BFloat16(1.0f + 3 * 0x1p-8f).bits, 0x3f82);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(NAN))));
}

TEST(ElementBytes, PackedTypesRoundUp) {
  EXPECT_EQ(element_bytes(ElementType::kInt4, 3), 2);
  EXPECT_EQ(element_bytes(ElementType::kFloat, 3), 12);
  EXPECT_THROW(element_bytes(ElementType::kDouble, int64_t{1} << 60), Error);
}

}  // namespace plimsoll
