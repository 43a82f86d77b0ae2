#include "tensor/small_types.h"

#include <gtest/gtest.h>

#include <limits>

namespace plimsoll {
namespace {

constexpr ElementType kFloats[] = {ElementType::kFloat8E4M3FN, ElementType::kFloat8E4M3FNUZ,
                                   ElementType::kFloat8E5M2,   ElementType::kFloat8E5M2FNUZ,
                                   ElementType::kFloat8E8M0,   ElementType::kFloat4E2M1};

TEST(SmallFloats, EveryPatternComesBack) {
  for (ElementType type : kFloats) {
    SCOPED_TRACE(element_type_name(type));
    for (unsigned bits = 0; bits < (1u << element_bits(type)); ++bits) {
      const float value = decode_small_float(type, bits);
      if (std::isnan(value)) continue;
      EXPECT_EQ(encode_small_float(type, static_cast<double>(value), {.saturate = false}), bits);
    }
  }
}

TEST(SmallFloats, LimitsOfTheSpecification) {
  EXPECT_EQ(decode_small_float(ElementType::kFloat8E4M3FN, 0x7e), 448);
  EXPECT_EQ(decode_small_float(ElementType::kFloat8E4M3FNUZ, 0x7f), 240);
  EXPECT_EQ(decode_small_float(ElementType::kFloat8E5M2, 0x7b), 57344);
  EXPECT_EQ(decode_small_float(ElementType::kFloat8E5M2FNUZ, 0x7f), 57344);
  EXPECT_EQ(decode_small_float(ElementType::kFloat8E4M3FN, 1), 0x1p-9f);
  EXPECT_EQ(decode_small_float(ElementType::kFloat8E5M2FNUZ, 1), 0x1p-17f);
  EXPECT_EQ(decode_small_float(ElementType::kFloat4E2M1, 7), 6);
}

TEST(SmallFloats, TooLargeSaturatesOrNot) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(encode_small_float(ElementType::kFloat8E4M3FN, 464, {}), 0x7e);  // halfway, to even
  EXPECT_EQ(encode_small_float(ElementType::kFloat8E4M3FN, 464, {.saturate = false}), 0x7e);
  EXPECT_EQ(encode_small_float(ElementType::kFloat8E4M3FN, 465, {.saturate = false}), 0x7f);
  EXPECT_EQ(encode_small_float(ElementType::kFloat8E4M3FN, -infinity, {.saturate = false}), 0xff);
  EXPECT_EQ(encode_small_float(ElementType::kFloat8E5M2, infinity, {.saturate = false}), 0x7c);
  EXPECT_EQ(encode_small_float(ElementType::kFloat8E5M2, infinity, {}), 0x7b);
  EXPECT_EQ(encode_small_float(ElementType::kFloat8E4M3FNUZ, infinity, {}), 0x7f);
  EXPECT_EQ(encode_small_float(ElementType::kFloat8E4M3FNUZ, infinity, {.saturate_infinity = false}), 0x80);
  EXPECT_EQ(encode_small_float(ElementType::kFloat8E4M3FNUZ, -0.0, {}), 0);
  EXPECT_EQ(encode_small_float(ElementType::kFloat4E2M1, std::nan(""), {}), 7);
}

TEST(SmallFloats, PowersOfTwoRoundAsTold) {
  const auto encoded = [](double value, E8M0Rounding rounding, bool saturate) {
    return encode_small_float(ElementType::kFloat8E8M0, value, {.saturate = saturate, .rounding = rounding});
  };
  EXPECT_EQ(encoded(1.5, E8M0Rounding::kDown, true), 127);
  EXPECT_EQ(encoded(1.25, E8M0Rounding::kUp, true), 128);
  EXPECT_EQ(encoded(1.5, E8M0Rounding::kNearest, true), 128);
  EXPECT_EQ(encoded(1.49, E8M0Rounding::kNearest, true), 127);
  EXPECT_EQ(encoded(0, E8M0Rounding::kUp, true), 0);
  EXPECT_EQ(encoded(0, E8M0Rounding::kNearest, false), 255);
  EXPECT_EQ(encoded(0x1.8p127, E8M0Rounding::kUp, true), 254);
  EXPECT_EQ(encoded(0x1.8p127, E8M0Rounding::kUp, false), 255);
}

TEST(PackedElements, ShareBytesFromTheLowestBits) {
  std::byte data[2] = {};
  set_packed_bits(data, 2, 0, 3);
  set_packed_bits(data, 2, 3, 2);
  set_packed_bits(data, 2, 5, 1);
  EXPECT_EQ(std::to_integer<int>(data[0]), 0x83);
  EXPECT_EQ(std::to_integer<int>(data[1]), 0x04);
  EXPECT_EQ(packed_bits(data, 2, 3), 2u);
  EXPECT_EQ(integer_at(ElementType::kInt2, data, 3), -2);
  EXPECT_EQ(integer_at(ElementType::kInt4, data, 1), -8);
  fill_packed(data, 4, 3, 9);
  EXPECT_EQ(std::to_integer<int>(data[0]), 0x99);
  EXPECT_EQ(std::to_integer<int>(data[1]), 0x09);
  EXPECT_EQ(element_bytes(ElementType::kUint2, 5), 2);
}

}  // namespace
}  // namespace plimsoll
