// Numbers of few bits and of bytes in runs of random lengths, against their definitions: back to floats, with
// each other, and the range of floats that become bytes.
#include <limits>

#include "kernels/block_dequantize.h"
#include "kernels/byte_arithmetic.h"
#include "kernels/float_types.h"
#include "kernels/quantize.h"

namespace plimsoll::kernels {
namespace {

std::vector<uint8_t> random_bytes(Dice& dice, int64_t count) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(dice.pick(0, 255));
  return bytes;
}

TEST(DequantizeBits, RandomRunsOfEveryWidth) {
  for_each_target([] {
    Dice dice(8);
    for (int round = 0; round < 90; ++round) {
      const int bits = 2 << (round % 3);
      const int64_t count = dice.length();
      const float scale = dice.real(0.01f, 1), zero = dice.real(0, 9);
      const Array<uint8_t> x(random_bytes(dice, (count * bits + 7) / 8));
      const Array<float> y(count);
      dequantize_bits(x.data(), bits, count, scale, zero, y.data());
      for (int64_t i = 0; i < count; ++i) {
        const int q = (x[i * bits / 8] >> (i * bits % 8)) & ((1 << bits) - 1);
        ASSERT_EQ(y[i], (static_cast<float>(q) - zero) * scale)
            << i << " of " << count << ", " << bits << " bits";
      }
    }
  });
}

TEST(DequantizeColumn, RandomMatrices) {
  for_each_target([] {
    Dice dice(9);
    for (int round = 0; round < 90; ++round) {
      NBitsMatrix m;
      m.bits = 2 << (round % 3), m.block = int64_t{16} << dice.pick(0, 2);
      m.k = dice.length(), m.n = dice.pick(1, 5);
      const int64_t blocks = m.blocks(), column_bytes = blocks * m.block * m.bits / 8;
      const int64_t zero_bytes = (blocks * m.bits + 7) / 8, mask = (1 << m.bits) - 1;
      const Array<uint8_t> data(random_bytes(dice, m.n * column_bytes)),
          zeros(random_bytes(dice, m.n * zero_bytes));
      const Array<float> scales(dice.values<float>(m.n * blocks)),
          real(dice.values<float>(m.n * blocks, 0, 9));
      m.data = data.data(), m.scales = scales.data();
      const int64_t kind = dice.pick(0, 2);  // of zero points
      if (kind == 1) m.zeros = zeros.data();
      if (kind == 2) m.real_zeros = real.data();
      const int64_t column = dice.pick(0, m.n - 1);
      const Array<float> y(m.k);
      dequantize_column(m, column, y.data());
      for (int64_t i = 0; i < m.k; ++i) {
        const int64_t block = i / m.block, bit = i * m.bits, zero_bit = block * m.bits;
        const auto q = (data[column * column_bytes + bit / 8] >> (bit % 8)) & mask;
        const auto packed = (zeros[column * zero_bytes + zero_bit / 8] >> (zero_bit % 8)) & mask;
        const float zero = kind == 0   ? static_cast<float>(1 << (m.bits - 1))
                           : kind == 1 ? static_cast<float>(packed)
                                       : real[column * blocks + block];
        ASSERT_EQ(y[i], (static_cast<float>(q) - zero) * scales[column * blocks + block])
            << i << " of " << m.k << ", " << m.bits << " bits, blocks of " << m.block;
      }
    }
  });
}

// Scales that are powers of two: sums and products are exact, and halves are met.
TEST(BytesWithBytes, SumsAndProductsOfRandomRuns) {
  for_each_target([] {
    Dice dice(10);
    for (int round = 0; round < 80; ++round) {
      const int64_t count = dice.length();
      const Array<uint8_t> a(random_bytes(dice, count)), b(random_bytes(dice, count)), sums(count),
          products(count);
      ByteOperands x{a.data(), b.data()};
      x.is_signed = dice.one_of(2);
      const int low = x.is_signed ? -128 : 0;
      if (dice.one_of(4)) x.a_stride = 0;
      if (dice.one_of(4)) x.b_stride = 0;
      for (int32_t* zero : {&x.a_zero, &x.b_zero, &x.zero})
        *zero = static_cast<int32_t>(dice.pick(low, low + 255));
      const auto scale = [&] { return std::ldexp(1.0f, static_cast<int>(dice.pick(-3, 1))); };
      const float a_scale = scale(), b_scale = scale(),
                  by = std::ldexp(1.0f, static_cast<int>(dice.pick(-9, -3)));
      add_8(x, count, a_scale, b_scale, sums.data());
      multiply_8(x, count, by, products.data());
      for (int64_t i = 0; i < count; ++i) {
        const auto value = [&](uint8_t byte) { return x.is_signed ? static_cast<int8_t>(byte) : int{byte}; };
        const auto rounded = [&](double v) {
          return value(static_cast<uint8_t>(
              static_cast<int>(std::clamp(std::nearbyint(v) + x.zero, double(low), double(low + 255)))));
        };
        const double of_a = value(a[x.a_stride * i]) - x.a_zero, of_b = value(b[x.b_stride * i]) - x.b_zero;
        ASSERT_EQ(value(sums[i]), rounded(of_a * double{a_scale} + of_b * double{b_scale}))
            << i << " of " << count;
        ASSERT_EQ(value(products[i]), rounded(of_a * of_b * double{by})) << i << " of " << count;
      }
    }
  });
}

TEST(SumsOfBytes, OfAnyNumberOfRowsAndColumns) {
  for_each_target([] {
    Dice dice(12);
    for (int round = 0; round < 60; ++round) {
      const int64_t rows = dice.one_of(5) ? dice.pick(250, 700) : dice.pick(0, 20), count = dice.pick(1, 150),
                    stride = count + dice.pick(0, 9);
      const Array<uint8_t> x(random_bytes(dice, rows * stride));
      const bool is_signed = dice.one_of(2);
      std::vector<int32_t> sums(static_cast<size_t>(count), 77), expected(sums.size(), 0);
      sum_rows_8(x.data(), is_signed, rows, stride, count, sums.data());
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < count; ++i) {
          const uint8_t byte = x[r * stride + i];
          expected[static_cast<size_t>(i)] += is_signed ? static_cast<int8_t>(byte) : byte;
        }
      }
      ASSERT_EQ(sums, expected) << rows << " rows of " << count;
    }
  });
}

TEST(RangeWithZero, PassesNaNOver) {
  for_each_target([] {
    Dice dice(11);
    for (int round = 0; round < 60; ++round) {
      std::vector<float> values = dice.values<float>(dice.length(), -3, 3);
      float least = 0, most = 0;
      for (float& v : values) {
        if (dice.one_of(5)) v = std::numeric_limits<float>::quiet_NaN();
        if (v < least) least = v;
        if (v > most) most = v;
      }
      const Array<float> x(values);
      const FloatRange range = range_with_zero(x.data(), x.size(), static_cast<int>(dice.pick(1, 2)));
      ASSERT_EQ(range.least, least) << "of " << x.size();
      ASSERT_EQ(range.most, most) << "of " << x.size();
    }
  });
}

}  // namespace
}  // namespace plimsoll::kernels
