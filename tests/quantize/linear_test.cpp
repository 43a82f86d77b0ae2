#include "quantize/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "quantize/block_rounding.h"

namespace plimsoll {
namespace {

TEST(LinearParameters, ZeroIsInTheRange) {
  const LinearParameters p = linear_parameters({2, 5}, {0, 255}, false);
  EXPECT_EQ(p.zero_point, 0);
  EXPECT_FLOAT_EQ(p.scale, 5.0f / 255);
  EXPECT_EQ(linear_parameters({-5, -2}, {0, 255}, false).zero_point, 255);
}

TEST(LinearParameters, SymmetricRangesHaveFixedZeroPoints) {
  EXPECT_EQ(linear_parameters({-1, 3}, integer_range(ElementType::kInt8, false, true), true).zero_point, 0);
  EXPECT_EQ(linear_parameters({-1, 3}, integer_range(ElementType::kUint8, false, true), true).zero_point,
            128);
  EXPECT_EQ(linear_parameters({-1, 3}, integer_range(ElementType::kUint16, false, true), true).zero_point,
            32768);
  EXPECT_FLOAT_EQ(linear_parameters({-1, 3}, integer_range(ElementType::kInt8, false, true), true).scale,
                  6.0f / 254);
  EXPECT_FLOAT_EQ(linear_parameters({-1, 3}, integer_range(ElementType::kInt8, true, true), true).scale,
                  6.0f / 128);
}

TEST(LinearParameters, NothingHasScaleOne) {
  const LinearParameters p = linear_parameters({0, 0}, {0, 255}, false);
  EXPECT_EQ(p.scale, 1);
  EXPECT_EQ(p.zero_point, 0);
  // Below what the type holds with all its digits.
  EXPECT_EQ(linear_parameters({0, 1e-3f}, {0, 255}, false, ElementType::kFloat16).scale, 1);
}

TEST(LinearParameters, ALeastRangeWidensUpwards) {
  EXPECT_FLOAT_EQ(linear_parameters({-1, 0}, {0, 255}, false, ElementType::kFloat, 10).scale, 10.0f / 255);
}

// Against the specification's words: half to even of x / scale, plus the zero point, held to the type.
TEST(QuantizeLinear, EveryRoundingAndSaturation) {
  std::mt19937 random(7);
  for (ElementType type :
       {ElementType::kInt8, ElementType::kUint8, ElementType::kInt16, ElementType::kUint16}) {
    const IntegerRange range = integer_range(type, false, false);
    for (int turn = 0; turn < 200; ++turn) {
      const LinearParameters p = {std::ldexp(1.0f, static_cast<int>(random() % 9) - 4),
                                  static_cast<int32_t>(range.low + random() % (range.high - range.low + 1))};
      std::vector<float> x(64);
      for (float& value : x)
        value = (static_cast<float>(random() % 400001) - 200000) / 2 * p.scale;  // halves
      x[0] = 1e30f, x[1] = -1e30f, x[2] = 0, x[3] = -0.0f;
      std::vector<std::byte> out(x.size() * 2);
      quantize_linear(x, p, type, out.data(), 0);
      for (size_t i = 0; i < x.size(); ++i) {
        const double expected =
            std::clamp<double>(std::nearbyint(double{x[i]} / p.scale) + p.zero_point, range.low, range.high);
        int found = 0;
        if (type == ElementType::kInt8) found = reinterpret_cast<int8_t*>(out.data())[i];
        if (type == ElementType::kUint8) found = reinterpret_cast<uint8_t*>(out.data())[i];
        if (type == ElementType::kInt16) found = reinterpret_cast<int16_t*>(out.data())[i];
        if (type == ElementType::kUint16) found = reinterpret_cast<uint16_t*>(out.data())[i];
        ASSERT_EQ(found, expected) << x[i] << " / " << p.scale << " + " << p.zero_point;
      }
    }
  }
}

TEST(QuantizeLinear, FourBitsShareBytes) {
  const float x[] = {-9, -8, 7, 0.5f, 1.5f};
  std::byte out[3] = {};
  quantize_linear(x, {1, 0}, ElementType::kInt4, out, 0);
  EXPECT_EQ(std::to_integer<int>(out[0]), 0x88);
  EXPECT_EQ(std::to_integer<int>(out[1]), 0x07);
  EXPECT_EQ(std::to_integer<int>(out[2]), 0x02);
}

TEST(Blocks, TheLargerSideTakesTheMoreNumbers) {
  const float block[] = {-0.5f, 2.0f, 1.0f};
  const BlockParameters p = block_parameters(block, 4, true);
  EXPECT_FLOAT_EQ(p.scale, -0.25f);
  EXPECT_EQ(block_number(2.0f, p, 4), 0);
  EXPECT_EQ(block_number(-0.5f, p, 4), 10);
}

TEST(Blocks, AllZeroIsZeroAgain) {
  const float block[] = {0, 0};
  for (bool symmetric : {false, true}) {
    const BlockParameters p = block_parameters(block, 4, symmetric);
    EXPECT_EQ((block_number(0, p, 4) - p.zero_point) * p.scale, 0);
  }
}

// What half-quadratic quantization is for: on weights with outliers it is nearer than rounding alone.
TEST(Blocks, HqqIsNearer) {
  std::mt19937 random(3);
  std::student_t_distribution<float> heavy(3);
  double plain = 0, better = 0;
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<float> block(64);
    for (float& x : block) x = heavy(random);
    const BlockParameters p = block_parameters(block, 4, false), h = hqq_parameters(block, 4);
    for (float x : block) {
      plain += std::fabs(x - (block_number(x, p, 4) - p.zero_point) * p.scale);
      better += std::fabs(x - (hqq_number(x, h, 4) - h.zero_point) * h.scale);
    }
  }
  EXPECT_LT(better, plain);
}

}  // namespace
}  // namespace plimsoll
