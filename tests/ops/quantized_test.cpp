#include <cmath>

#include "ops/op_case.h"

namespace plimsoll {
namespace {

template <typename T>
std::vector<T> counting(int64_t count, int step) {
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<T>((i * step + 3) % 251));
  return values;
}

std::vector<int32_t> sums(const std::vector<uint8_t>& a, int32_t a_zero, const std::vector<int8_t>& b,
                          int32_t b_zero, int64_t m, int64_t k, int64_t n) {
  std::vector<int32_t> y;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      int32_t sum = 0;
      for (int64_t x = 0; x < k; ++x)
        sum += (a[static_cast<size_t>(i * k + x)] - a_zero) * (b[static_cast<size_t>(x * n + j)] - b_zero);
      y.push_back(sum);
    }
  }
  return y;
}

TEST(MatMulInteger, RowsAndColumnsThatTilesLeaveOver) {
  for (int64_t m : {1, 7, 50}) {
    const int64_t k = 37, n = 67;
    const auto a = counting<uint8_t>(m * k, 7);
    const auto b = counting<int8_t>(k * n, 11);
    OpCase("MatMulInteger", 10)
        .input<uint8_t>({m, k}, a)
        .input<int8_t>({k, n}, b)
        .input<uint8_t>({}, {12})
        .input<int8_t>({1}, {-3})
        .run()
        .expect<int32_t>(0, {m, n}, sums(a, 12, b, -3, m, k, n));
  }
}

TEST(MatMulInteger, BatchesShareB) {
  const auto a = counting<uint8_t>(2 * 3 * 5, 7);
  const auto b = counting<int8_t>(5 * 4, 11);
  OpCase("MatMulInteger", 10)
      .input<uint8_t>({2, 3, 5}, a)
      .input<int8_t>({5, 4}, b)
      .run()
      .expect<int32_t>(0, {2, 3, 4}, sums(a, 0, b, 0, 6, 5, 4));
}

TEST(QLinearMatMul, RoundsHalfToEvenAndSaturates) {
  OpCase("QLinearMatMul", 10)
      .input<uint8_t>({2, 2}, {1, 2, 3, 200})
      .input<float>({}, {0.5f})
      .input<uint8_t>({}, {0})
      .input<int8_t>({2, 2}, {1, 2, 1, -100})
      .input<float>({}, {1})
      .input<int8_t>({}, {0})
      .input<float>({}, {1})
      .input<int8_t>({}, {1})
      .run()
      .expect<int8_t>(0, {2, 2}, {3, -98, 103, -128});
}

TEST(MatMulIntegerToFloat, ScalesAndBias) {
  const auto a = counting<uint8_t>(3 * 5, 7);
  const auto b = counting<int8_t>(5 * 33, 11);
  const std::vector<int32_t> whole = sums(a, 9, b, 2, 3, 5, 33);
  std::vector<float> scales, bias, y;
  for (int i = 0; i < 33; ++i) {
    scales.push_back(0.01f * static_cast<float>(i + 1));
    bias.push_back(static_cast<float>(i));
  }
  for (size_t i = 0; i < whole.size(); ++i)
    y.push_back(static_cast<float>(whole[i]) * 0.5f * scales[i % 33] + bias[i % 33]);
  OpCase("MatMulIntegerToFloat", 1, "com.microsoft")
      .input<uint8_t>({3, 5}, a)
      .input<int8_t>({5, 33}, b)
      .input<float>({}, {0.5f})
      .input<float>({33}, scales)
      .input<uint8_t>({}, {9})
      .input<int8_t>({1}, {2})
      .input<float>({33}, bias)
      .run()
      .expect<float>(0, {3, 33}, y, 1e-1);
}

TEST(DynamicQuantizeMatMul, QuantizesFirst) {
  // 0 to 2.55 in steps of 0.01: every product is exact.
  OpCase("DynamicQuantizeMatMul", 1, "com.microsoft")
      .input<float>({2, 2}, {0, 2.55f, 1, 0.5f})
      .input<int8_t>({2, 2}, {1, 2, 3, 4})
      .input<float>({}, {1})
      .run()
      .expect<float>(0, {2, 2}, {7.65f, 10.2f, 2.5f, 4}, 1e-4);
}

TEST(QGemm, TransposedWithBias) {
  OpCase("QGemm", 1, "com.microsoft")
      .attr("transB", int64_t{1})
      .input<uint8_t>({1, 3}, {1, 2, 3})
      .input<float>({}, {0.5f})
      .input<uint8_t>({}, {1})
      .input<int8_t>({2, 3}, {1, 1, 1, 2, 2, 2})
      .input<float>({}, {1})
      .input<int8_t>({}, {0})
      .input<int32_t>({2}, {10, 20})
      .run()
      .expect<float>(0, {1, 2}, {6.5f, 13});
}

// Plain loops over one image, padded with the zero point.
std::vector<int32_t> convolved(const std::vector<uint8_t>& x, int32_t x_zero, const std::vector<int8_t>& w,
                               int64_t channels, int64_t size, int64_t outputs, bool depthwise) {
  std::vector<int32_t> y;
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t i = 0; i < size * size; ++i) {
      int32_t sum = 0;
      const int64_t inner = depthwise ? 1 : channels;
      for (int64_t c = 0; c < inner; ++c) {
        for (int64_t tap = 0; tap < 9; ++tap) {
          const int64_t row = i / size + tap / 3 - 1, column = i % size + tap % 3 - 1;
          if (row < 0 || row >= size || column < 0 || column >= size) continue;
          const int64_t from = ((depthwise ? o : c) * size + row) * size + column;
          sum += (x[static_cast<size_t>(from)] - x_zero) * w[static_cast<size_t>((o * inner + c) * 9 + tap)];
        }
      }
      y.push_back(sum);
    }
  }
  return y;
}

TEST(ConvInteger, PaddingIsTheZeroPoint) {
  const int64_t channels = 5, size = 9, outputs = 35;
  const auto x = counting<uint8_t>(channels * size * size, 7);
  const auto w = counting<int8_t>(outputs * channels * 9, 11);
  OpCase("ConvInteger", 10)
      .attr("pads", std::vector<int64_t>{1, 1, 1, 1})
      .input<uint8_t>({1, channels, size, size}, x)
      .input<int8_t>({outputs, channels, 3, 3}, w)
      .input<uint8_t>({}, {77})
      .run()
      .expect<int32_t>(0, {1, outputs, size, size}, convolved(x, 77, w, channels, size, outputs, false));
}

TEST(ConvInteger, DepthwiseChannelsThatVectorsLeaveOver) {
  const int64_t channels = 37, size = 6;
  const auto x = counting<uint8_t>(channels * size * size, 7);
  const auto w = counting<int8_t>(channels * 9, 11);
  OpCase("ConvInteger", 10)
      .attr("pads", std::vector<int64_t>{1, 1, 1, 1})
      .attr("group", channels)
      .input<uint8_t>({1, channels, size, size}, x)
      .input<int8_t>({channels, 1, 3, 3}, w)
      .input<uint8_t>({}, {77})
      .run()
      .expect<int32_t>(0, {1, channels, size, size}, convolved(x, 77, w, channels, size, channels, true));
}

TEST(QLinearConv, ScalePerChannelAndBias) {
  OpCase("QLinearConv", 10)
      .input<uint8_t>({1, 2, 1, 2}, {10, 20, 30, 40})
      .input<float>({}, {0.5f})
      .input<uint8_t>({}, {10})
      .input<int8_t>({2, 2, 1, 1}, {1, 1, 2, -1})
      .input<float>({2}, {1, 2})
      .input<int8_t>({2}, {0, 0})
      .input<float>({}, {1})
      .input<uint8_t>({}, {100})
      .input<int32_t>({2}, {4, 0})
      .run()
      .expect<uint8_t>(0, {1, 2, 1, 2}, {112, 122, 80, 90});
}

TEST(QuantizeLinear, AxisAndHalfToEven) {
  OpCase("QuantizeLinear", 13)
      .attr("axis", int64_t{0})
      .input<float>({2, 3}, {0.5f, 1.5f, -2.5f, 100, 300, -300})
      .input<float>({2}, {1, 2})
      .input<int8_t>({2}, {0, 1})
      .run()
      .expect<int8_t>(0, {2, 3}, {0, 2, -2, 51, 127, -128});
}

TEST(DequantizeLinear, BlocksAlongTheLastAxis) {
  OpCase("DequantizeLinear", 21)
      .attr("block_size", int64_t{2})
      .input<uint8_t>({1, 3}, {1, 2, 3})
      .input<float>({1, 2}, {0.5f, 2})
      .input<uint8_t>({1, 2}, {1, 0})
      .run()
      .expect<float>(0, {1, 3}, {0, 0.5f, 6});
}

TEST(DynamicQuantizeLinear, ZeroIsInTheRange) {
  OpCase("DynamicQuantizeLinear", 11)
      .outputs(3)
      .input<float>({4}, {0, 2, -3, -2.5f})
      .run()
      .expect<uint8_t>(0, {4}, {153, 255, 0, 26})
      .expect<float>(1, {}, {5.0f / 255})
      .expect<uint8_t>(2, {}, {153});
}

TEST(MatMulNBits, FourBitsInBlocks) {
  // One column: 16 weights of 9, which is 1 above the zero point, then 8 of 7.
  std::vector<uint8_t> b(16, 0x99);
  for (size_t i = 8; i < 12; ++i) b[i] = 0x77;
  for (size_t i = 12; i < 16; ++i) b[i] = 0;
  std::vector<float> a;
  for (int i = 0; i < 48; ++i) a.push_back(static_cast<float>(i % 24));
  OpCase("MatMulNBits", 1, "com.microsoft")
      .attr("K", int64_t{24})
      .attr("N", int64_t{1})
      .attr("bits", int64_t{4})
      .attr("block_size", int64_t{16})
      .input<float>({2, 24}, a)
      .input<uint8_t>({1, 2, 8}, b)
      .input<float>({1, 2}, {1, 2})
      .run()
      .expect<float>(0, {2, 1}, {120 - 2 * 156, 120 - 2 * 156});
  // Zero points of 16 bits with floats, as ONNX Runtime takes them: 9 - 8.5 and 7 - 6.25.
  OpCase("MatMulNBits", 1, "com.microsoft")
      .attr("K", int64_t{24})
      .attr("N", int64_t{1})
      .attr("bits", int64_t{4})
      .attr("block_size", int64_t{16})
      .input<float>({2, 24}, a)
      .input<uint8_t>({1, 2, 8}, b)
      .input<float>({1, 2}, {1, 2})
      .input<Float16>({1, 2}, {Float16(8.5f), Float16(6.25f)})
      .run()
      .expect<float>(0, {2, 1}, {0.5f * 120 + 1.5f * 156, 0.5f * 120 + 1.5f * 156});
}

TEST(QLinearAdd, TablesAndBroadcast) {
  OpCase("QLinearAdd", 1, "com.microsoft")
      .input<uint8_t>({2, 2}, {1, 2, 3, 255})
      .input<float>({}, {1})
      .input<uint8_t>({}, {0})
      .input<uint8_t>({1}, {5})
      .input<float>({}, {2})
      .input<uint8_t>({}, {1})
      .input<float>({}, {2})
      .input<uint8_t>({}, {10})
      .run()
      .expect<uint8_t>(0, {2, 2}, {14, 15, 16, 142});
}

TEST(ByteTable, LooksUpBytesOfBothTypes) {
  std::vector<uint8_t> table;
  for (int i = 0; i < 256; ++i) table.push_back(static_cast<uint8_t>(255 - i));
  OpCase("ByteTable", 1, "ai.plimsoll")
      .input<int8_t>({2, 2}, {0, 1, -1, -128})
      .input<uint8_t>({256}, table)
      .run()
      .expect<uint8_t>(0, {2, 2}, {255, 254, 0, 127});
}

TEST(QLinearLayerNormalization, NormalizesRows) {
  OpCase("QLinearLayerNormalization", 1, "ai.plimsoll")
      .attr("epsilon", 0.0f)
      .input<uint8_t>({2, 2}, {0, 2, 200, 100})
      .input<float>({}, {1})
      .input<uint8_t>({}, {1})
      .input<float>({2}, {2, 2})
      .input<float>({2}, {1, 1})
      .input<float>({}, {0.5f})
      .input<uint8_t>({}, {10})
      .run()
      .expect<uint8_t>(0, {2, 2}, {8, 16, 16, 8});
}

// Products 2 and 4 with a zero point of 10; the sums 2 + 3 * 2 and 4 - 2 * 2 (a row), all of it plus 20.
TEST(QLinearMatMulAdd, AddsARowOrAMatrix) {
  for (bool is_row : {true, false}) {
    OpCase c("QLinearMatMulAdd", 1, "ai.plimsoll");
    c.input<uint8_t>({2, 1}, {3, 5})
        .input<float>({}, {1})
        .input<uint8_t>({}, {1})
        .input<int8_t>({1, 2}, {2, 4})
        .input<float>({}, {0.5f})
        .input<int8_t>({}, {0})
        .input<float>({}, {1})
        .input<uint8_t>({}, {10});
    is_row ? c.input<int8_t>({2}, {7, 2}) : c.input<int8_t>({2, 2}, {7, 2, 4, 127});
    c.input<float>({}, {2}).input<int8_t>({}, {4}).input<float>({}, {1}).input<uint8_t>({}, {20}).run();
    is_row ? c.expect<uint8_t>(0, {2, 2}, {28, 20, 30, 24}) : c.expect<uint8_t>(0, {2, 2}, {28, 20, 24, 255});
  }
}

// An image of two rows, one column and one channel, which comes last.
TEST(FusedQLinearConv, AddsAResidualWithinBounds) {
  OpCase("FusedQLinearConv", 1, "ai.plimsoll")
      .attr("channels_last", int64_t{1})
      .attr("most", int64_t{250})
      .input<uint8_t>({1, 2, 1, 1}, {3, 5})
      .input<float>({}, {1})
      .input<uint8_t>({}, {1})
      .input<int8_t>({1, 1, 1, 1}, {2})
      .input<float>({}, {0.5f})
      .input<int8_t>({}, {0})
      .input<float>({}, {1})
      .input<uint8_t>({}, {10})
      .input<int32_t>({1}, {2})
      .input<uint8_t>({1, 2, 1, 1}, {4, 200})
      .input<float>({}, {2})
      .input<uint8_t>({}, {4})
      .input<float>({}, {1})
      .input<uint8_t>({}, {20})
      .run()
      .expect<uint8_t>(0, {1, 2, 1, 1}, {23, 250});
}

TEST(FusedQLinearConv, GivesFloatsWithoutAScale) {
  OpCase("FusedQLinearConv", 1, "ai.plimsoll")
      .input<uint8_t>({1, 1, 2, 1}, {3, 5})
      .input<float>({}, {1})
      .input<uint8_t>({}, {1})
      .input<int8_t>({1, 1, 1, 1}, {2})
      .input<float>({}, {0.5f})
      .input<int8_t>({}, {0})
      .run()
      .expect<float>(0, {1, 1, 2, 1}, {2, 4});
}

TEST(QAttention, OneQueryTakesItsOwnValue) {
  OpCase("QAttention", 1, "com.microsoft")
      .attr("num_heads", int64_t{1})
      .input<uint8_t>({1, 1, 1}, {3})
      .input<int8_t>({1, 6}, {1, 1, 1, 1, 2, 4})
      .input<float>({6}, {0, 0, 0, 0, 0.5f, 0})
      .input<float>({}, {0.5f})
      .input<float>({}, {1})
      .outputs(2)
      .run()
      .expect<float>(0, {1, 1, 2}, {3.5f, 6})
      .expect<float>(1, {2, 1, 1, 1, 2}, {1.5f, 1.5f, 3.5f, 6});
}

}  // namespace
}  // namespace plimsoll
