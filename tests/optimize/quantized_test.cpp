// Rewrites of models with QuantizeLinear and DequantizeLinear against the same model without them.
#include <cmath>
#include <random>

#include "graph_case.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

class QdqCase : public GraphCase {
 public:
  explicit QdqCase(bool is_signed = false, int opset = 17) : GraphCase(opset), signed_(is_signed) {}

  struct Scale {
    float scale;
    int zero;
  };
  Edge* zero(int value) {
    return signed_ ? constant<int8_t>({}, {static_cast<int8_t>(value - 128)})
                   : constant<uint8_t>({}, {static_cast<uint8_t>(value)});
  }
  Edge* q(Edge* x, Scale s) { return node("QuantizeLinear", {x, scalar(s.scale), zero(s.zero)}); }
  Edge* dq(Edge* x, Scale s) { return node("DequantizeLinear", {x, scalar(s.scale), zero(s.zero)}); }
  Edge* qdq(Edge* x, Scale s) { return dq(q(x, s), s); }

  std::vector<int8_t> bytes(int64_t count) {
    std::vector<int8_t> values;
    for (float v : sequence(count)) values.push_back(static_cast<int8_t>(v * 60));
    return values;
  }
  // int8 weights behind a DequantizeLinear; several scales along `axis`, or one.
  Edge* weight(const std::vector<int64_t>& dims, float scale, int64_t axis = -1) {
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    Edge* w = constant<int8_t>(dims, bytes(count));
    if (axis < 0) return node("DequantizeLinear", {w, scalar(scale), constant<int8_t>({}, {0})});
    const int64_t channels = dims[static_cast<size_t>(axis)];
    std::vector<float> scales;
    for (int64_t i = 0; i < channels; ++i) scales.push_back(scale * static_cast<float>(1 << (i % 3)));
    return node("DequantizeLinear",
                {w, constant<float>({channels}, scales),
                 constant<int8_t>({channels}, std::vector<int8_t>(static_cast<size_t>(channels)))},
                attrs().set("axis", axis));
  }
  Edge* bias(int64_t count, float scale) {
    std::vector<int32_t> values;
    for (float v : sequence(count)) values.push_back(static_cast<int32_t>(v * 500));
    return node("DequantizeLinear", {constant<int32_t>({count}, values), scalar(scale)});
  }

  // Largest difference that rewriting makes.
  float optimized(int level = 3) {
    ready();
    const auto before = run();
    OptimizeOptions options;
    options.level = level;
    options.check_passes = true;
    optimize(root(), options);
    infer_graph(root());
    const auto after = run();
    float most = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i].size(), after[i].size());
      for (size_t k = 0; k < std::min(before[i].size(), after[i].size()); ++k)
        most = std::max(most, std::abs(before[i][k] - after[i][k]));
    }
    return most;
  }

 private:
  bool signed_;
};

constexpr QdqCase::Scale kFine{0.0131f, 121}, kWide{0.037f, 90}, kOut{0.11f, 100};

// ---- one operator: within one step -------------------------------------------------------------------

struct ConvCase {
  int64_t channels, outputs, groups, kernel, stride, dilation;
  bool per_channel, has_bias;
};

void add_conv(QdqCase& c, const ConvCase& t, const std::string& activation) {
  Edge* x = c.qdq(c.input({2, t.channels, 9, 11}), kFine);
  Edge* w = c.weight({t.outputs, t.channels / t.groups, t.kernel, t.kernel}, 0.01f, t.per_channel ? 0 : -1);
  std::vector<Edge*> inputs = {x, w};
  if (t.has_bias) inputs.push_back(c.bias(t.outputs, 0.0131f * 0.01f));
  const std::vector<int64_t> pads = {1, 1, 1, 1}, strides = {t.stride, t.stride},
                             dilations = {t.dilation, t.dilation};
  AttributeList attributes = c.attrs();
  attributes.set("pads", std::span<const int64_t>(pads)).set("strides", std::span<const int64_t>(strides));
  attributes.set("dilations", std::span<const int64_t>(dilations)).set("group", t.groups);
  Edge* y = c.node("Conv", inputs, attributes);
  if (activation == "Relu") y = c.node("Relu", {y});
  if (activation == "Clip") y = c.node("Clip", {y, c.scalar(-0.5f), c.scalar(2)});
  c.output(c.q(y, kOut));
}

TEST(Quantized, ConvolutionsAreWithinOneStep) {
  for (const ConvCase& t : {ConvCase{3, 8, 1, 3, 1, 1, false, true}, ConvCase{8, 40, 1, 1, 2, 1, true, true},
                            ConvCase{6, 6, 6, 3, 1, 1, true, true}, ConvCase{6, 9, 3, 3, 2, 1, false, false},
                            ConvCase{70, 70, 70, 3, 2, 2, true, true}}) {
    for (const char* activation : {"", "Relu", "Clip"}) {
      for (bool is_signed : {false, true}) {
        for (int level : {2, 3}) {
          SCOPED_TRACE(testing::Message()
                       << t.channels << ", " << t.groups << activation << is_signed << level);
          QdqCase c(is_signed);
          add_conv(c, t, activation);
          EXPECT_LE(c.optimized(level), 1);
          EXPECT_EQ(c.count("Conv") + c.fused("Conv") + c.fused("FusedConv"), 0);
          EXPECT_EQ(c.count("QLinearConv") + c.fused("QLinearConv") + c.fused("FusedQLinearConv"), 1);
        }
      }
    }
  }
}

TEST(Quantized, AConvolutionWhoseOutputIsReadAsFloatsKeepsThem) {
  QdqCase c;
  Edge* x = c.qdq(c.input({1, 4, 6, 6}), kFine);
  c.output(c.node("Neg", {c.node("Conv", {x, c.weight({8, 4, 3, 3}, 0.01f)})}));
  EXPECT_LE(c.optimized(), 1e-4f);
  EXPECT_EQ(c.fused("FusedQLinearConv"), 1);
}

TEST(Quantized, MatMulAndGemmAreWithinOneStep) {
  for (bool per_channel : {false, true}) {
    QdqCase c;
    Edge* x = c.qdq(c.input({3, 5, 20}), kFine);
    c.output(c.q(c.node("MatMul", {x, c.weight({20, 33}, 0.01f, per_channel ? 1 : -1)}), kOut));
    Edge* rows = c.qdq(c.input({7, 20}), kFine);
    c.output(c.q(
        c.node("Gemm", {rows, c.weight({33, 20}, 0.01f, per_channel ? 0 : -1), c.bias(33, 0.0131f * 0.01f)},
               c.attrs().set("transB", int64_t{1})),
        kOut));
    Edge* other = c.qdq(c.input({3, 20, 6}), kWide);
    c.output(c.q(c.node("MatMul", {x, other}), kOut));
    EXPECT_LE(c.optimized(), 1);
    EXPECT_EQ(c.count("QLinearMatMul"), 2);
    EXPECT_EQ(c.count("QGemm", "com.microsoft"), 1);
    EXPECT_EQ(c.count("DequantizeLinear"), 0);
  }
}

TEST(Quantized, AProductWhoseOutputIsReadAsFloatsIsOne) {
  QdqCase c;
  c.output(c.node("Neg", {c.node("MatMul", {c.qdq(c.input({4, 20}), kFine), c.weight({20, 9}, 0.01f, 1)})}));
  EXPECT_LE(c.optimized(), 1e-4f);
  EXPECT_EQ(c.count("MatMulIntegerToFloat", "com.microsoft"), 1);
}

TEST(Quantized, SumsProductsAndMeansAreWithinOneStep) {
  QdqCase c;
  Edge* a = c.qdq(c.input({2, 5, 6, 7}), kFine);
  Edge* b = c.qdq(c.input({2, 5, 6, 7}), kWide);
  Edge* gate = c.qdq(c.input({2, 5, 1, 1}), kWide);
  c.output(c.q(c.node("Add", {a, b}), kOut));
  c.output(c.q(c.node("Mul", {a, gate}), kOut));
  c.output(c.q(c.node("GlobalAveragePool", {a}), kFine));
  c.output(c.q(c.node("Softmax", {b}, c.attrs().set("axis", int64_t{-1})), {1.0f / 256, 0}));
  const std::vector<int64_t> window = {2, 2};
  c.output(c.q(c.node("AveragePool", {a}, c.attrs().set("kernel_shape", std::span<const int64_t>(window))),
               kFine));
  c.output(c.q(c.node("LayerNormalization", {a, c.weights({7}), c.weights({7})}), kWide));
  c.output(c.q(c.node("Concat", {a, b}, c.attrs().set("axis", int64_t{1})), kWide));
  EXPECT_LE(c.optimized(), 1);
  EXPECT_EQ(c.count("DequantizeLinear"), 0);
}

TEST(Quantized, InterpolationIsOfBytes) {
  for (const char* coordinates : {"half_pixel", "align_corners"}) {
    for (bool is_signed : {false, true}) {
      for (bool is_wider : {false, true}) {
        QdqCase c(is_signed);
        const std::vector<int64_t> sizes = {2, 5, is_wider ? 13 : 3, is_wider ? 9 : 4};
        Edge* x = c.qdq(c.input({2, 5, 6, 7}), kFine);
        Edge* y = c.node("Resize", {x, nullptr, nullptr, c.constant<int64_t>({4}, sizes)},
                         c.attrs().set("mode", "linear").set("coordinate_transformation_mode", coordinates));
        c.output(c.q(y, is_wider ? kFine : kWide));
        EXPECT_LE(c.optimized(), 1);
        EXPECT_EQ(c.fused("QLinearResize"), 1);
        EXPECT_EQ(c.count("Resize") + c.count("DequantizeLinear"), 0);
      }
    }
  }
}

TEST(Quantized, InterpolationOfWhatIsReadAsFloatsToo) {
  QdqCase c;
  Edge* x = c.qdq(c.input({1, 2, 3, 4}), kFine);
  Edge* y =
      c.node("Resize", {x, nullptr, c.constant<float>({4}, {1, 1, 2, 2})}, c.attrs().set("mode", "linear"));
  c.output(y);
  c.output(c.q(y, kFine));
  EXPECT_EQ(c.optimized(), 0);
  EXPECT_EQ(c.fused("QLinearResize"), 0);
}

TEST(Quantized, AResidualIsAddedByTheConvolution) {
  QdqCase c;
  Edge* x = c.qdq(c.input({1, 16, 6, 6}), kFine);
  Edge* y = c.qdq(c.node("Conv", {x, c.weight({16, 16, 1, 1}, 0.01f)}), kOut);
  Edge* sum = c.qdq(c.node("Add", {x, y}), kWide);
  c.output(c.q(c.node("Conv", {sum, c.weight({4, 16, 1, 1}, 0.01f)}), {0.5f, 100}));
  EXPECT_LE(c.optimized(), 1);
  EXPECT_EQ(c.count("QLinearAdd", "com.microsoft"), 0);
  EXPECT_EQ(c.fused("FusedQLinearConv"), 1);
}

TEST(Quantized, ABiasOrAResidualIsAddedByTheProduct) {
  for (bool is_signed : {false, true}) {
    for (bool is_row : {true, false}) {
      for (bool has_batches : {false, true}) {
        SCOPED_TRACE(testing::Message() << is_signed << is_row << has_batches);
        QdqCase c(is_signed);
        Edge* x = c.qdq(c.input({3, 7, 20}), kFine);
        Edge* w = has_batches ? c.qdq(c.input({3, 20, 33}), kFine) : c.weight({20, 33}, 0.01f, 1);
        Edge* y = c.qdq(c.node("MatMul", {x, w}), kWide);
        Edge* z = c.qdq(is_row ? c.weights({33}) : c.input({3, 7, 33}), kFine);
        c.output(c.q(c.node("Add", {z, y}), kOut));
        EXPECT_LE(c.optimized(), 1);
        EXPECT_EQ(c.count("QLinearAdd", "com.microsoft"), 0);
        EXPECT_EQ(c.fused("QLinearMatMulAdd"), 1);
      }
    }
  }
}

// ---- tables and movement: equal ----------------------------------------------------------------------

TEST(Quantized, WhatOneByteDecidesIsATable) {
  for (bool is_signed : {false, true}) {
    QdqCase c(is_signed);
    Edge* x = c.qdq(c.input({2, 300}), kFine);
    Edge* gelu = c.qdq(c.node("Erf", {c.node("Div", {x, c.scalar(1.41421356f)})}), {0.01f, 128});
    Edge* half =
        c.qdq(c.node("Mul", {x, c.qdq(c.node("Add", {gelu, c.constant<float>({1, 1}, {1})}), kFine)}), kWide);
    // As the quantizer writes it, that constant is a byte too.
    Edge* factor = c.qdq(c.constant<float>({}, {0.5f}), {0.5f / 255, 0});
    c.output(c.q(c.node("Mul", {half, factor}), kFine));
    c.output(c.q(c.node("HardSwish", {c.qdq(c.input({3, 4, 5}), kWide)}), kOut));
    EXPECT_EQ(c.optimized(), 0);
    EXPECT_EQ(c.fused("ByteTable"), 2);
    EXPECT_EQ(c.node_count(), 4);  // and two QuantizeLinear
  }
}

TEST(Quantized, NoTableOfTwoValuesOrOfManyNumbers) {
  QdqCase c;
  Edge *a = c.qdq(c.input({2, 30}), kFine), *b = c.qdq(c.input({2, 30}), kFine);
  c.output(c.q(c.node("Max", {a, b}), kFine));
  c.output(c.q(c.node("Max", {a, c.weights({30})}), kFine));
  EXPECT_EQ(c.optimized(), 0);
  EXPECT_EQ(c.fused("ByteTable"), 0);
}

TEST(Quantized, MovementMovesIntegers) {
  QdqCase c;
  Edge* x = c.qdq(c.input({2, 4, 6}), kFine);
  const std::vector<int64_t> perm = {0, 2, 1};
  Edge* turned = c.qdq(c.transpose(x, perm), kFine);
  Edge* flat = c.qdq(c.node("Reshape", {turned, c.constant<int64_t>({2}, {2, 24})}), kFine);
  c.output(c.q(c.node("MatMul", {flat, c.weight({24, 5}, 0.01f)}), kOut));
  Edge* table = c.weight({50, 8}, 0.01f);
  c.output(c.node("Gather", {table, c.constant<int64_t>({3}, {4, 49, 0})}));
  c.output(c.node("Gather", {table, c.input({5}, ElementType::kInt64)}));
  EXPECT_LE(c.optimized(), 1);
  EXPECT_EQ(c.count("DequantizeLinear"), 1);  // of three of the table's rows
  EXPECT_EQ(c.find("DequantizeLinear")->input(0)->producer->op_type, "Gather");
  EXPECT_EQ(c.count("QuantizeLinear"), 1);
}

// ---- floats times large matrices of bytes ------------------------------------------------------------

enum class Turned { kNo, kBefore, kBehind };

// y = x * W with W of 272 x 4000 behind DequantizeLinear; returns the operators that are left.
std::vector<std::string> multiply_weights(bool is_signed, Turned turned, bool per_column, float& most) {
  constexpr int64_t kK = 272, kN = 4000;
  QdqCase c;
  std::mt19937 random(7);
  std::vector<uint8_t> values(kK * kN);
  for (uint8_t& value : values) value = static_cast<uint8_t>(random());
  const std::vector<int64_t> dims =
      turned == Turned::kNo ? std::vector<int64_t>{kK, kN} : std::vector{kN, kK};
  Edge* w = is_signed ? c.constant<int8_t>(dims, std::vector<int8_t>(values.begin(), values.end()))
                      : c.constant<uint8_t>(dims, values);
  if (turned == Turned::kBefore) w = c.transpose(w, {1, 0});
  const int64_t count = per_column ? kN : 1;
  std::vector<float> scales;
  std::vector<uint8_t> zeros;
  for (int64_t i = 0; i < count; ++i)
    scales.push_back(0.01f + static_cast<float>(i % 7) * 0.003f),
        zeros.push_back(static_cast<uint8_t>(random()));
  const std::vector<int64_t> shape = per_column ? std::vector<int64_t>{kN} : std::vector<int64_t>{};
  Edge* zero = is_signed ? c.constant<int8_t>(shape, std::vector<int8_t>(zeros.begin(), zeros.end()))
                         : c.constant<uint8_t>(shape, zeros);
  w = c.node("DequantizeLinear", {w, c.constant<float>(shape, scales), zero},
             c.attrs().set("axis", int64_t{turned == Turned::kBehind ? 0 : 1}));
  if (turned == Turned::kBehind) w = c.transpose(w, {1, 0});
  Edge* y = c.node("MatMul", {c.input({2, 3, kK}), w});
  if (per_column) y = c.node("Add", {c.weights({1, kN}), y});  // the product takes a bias
  if (is_signed) y = c.node("Add", {y, c.input({2, 3, kN})});  // but no more than that
  c.output(y);
  most = c.optimized();
  std::vector<std::string> left;
  for (const Node* node : c.root().nodes) left.emplace_back(node->op_type);
  return left;
}

TEST(Quantized, LargeMatricesBehindDequantizeLinearAreMultipliedAsBytes) {
  for (bool is_signed : {false, true}) {
    for (Turned turned : {Turned::kNo, Turned::kBefore, Turned::kBehind}) {
      for (bool per_column : {false, true}) {
        SCOPED_TRACE(testing::Message() << is_signed << static_cast<int>(turned) << per_column);
        float most = 0;
        std::vector<std::string> expected = {"MatMulNBits"};
        if (is_signed) expected.emplace_back("Add");
        EXPECT_EQ(multiply_weights(is_signed, turned, per_column, most), expected);
        EXPECT_LT(most, 272 * 8 * 1e-6f);  // sums of 272 floats below 8 in another order
      }
    }
  }
}

// ---- whole graphs: equal where scales are powers of two, because no float is rounded before the result ----

Edge* random_step(QdqCase& c, Edge* x, std::mt19937& random, int64_t channels) {
  const auto scale = [&] {
    return QdqCase::Scale{std::ldexp(1.0f, -3 - static_cast<int>(random() % 3)), 120};
  };
  const std::vector<int64_t> pads = {1, 1, 1, 1}, three = {3, 3};
  switch (random() % 11) {
    case 0:
    case 1: {
      const int64_t groups = random() % 2 == 0 ? 1 : channels;
      const int64_t kernel = random() % 2 == 0 ? 1 : 3;
      AttributeList attributes = c.attrs();
      if (kernel == 3) attributes.set("pads", std::span<const int64_t>(pads));
      attributes.set("group", groups);
      Edge* w =
          c.weight({channels, channels / groups, kernel, kernel}, 1.0f / 64, random() % 2 == 0 ? 0 : -1);
      Edge* y = c.node("Conv", {x, w}, attributes);
      if (random() % 2 == 0) y = c.node("Relu", {y});
      return c.qdq(y, scale());
    }
    case 2:
      return c.qdq(c.node("Add", {x, c.qdq(c.node("HardSwish", {x}), scale())}), scale());
    case 3:
      return c.qdq(
          c.node("Add",
                 {c.qdq(c.node("Conv", {x, c.weight({channels, channels, 1, 1}, 1.0f / 64)}), scale()), x}),
          scale());
    case 4:
      return c.qdq(c.node("Sigmoid", {x}), scale());
    case 5:
      return c.qdq(c.node("Mul", {x, c.qdq(c.node("GlobalAveragePool", {x}), scale())}), scale());
    case 6: {  // a product of the last axis, with a bias
      Edge* y =
          c.qdq(c.node("MatMul", {x, c.weight({4, 4}, 1.0f / 64, random() % 2 == 0 ? 1 : -1)}), scale());
      return c.qdq(c.node("Add", {y, c.qdq(c.weights({4}), scale())}), scale());
    }
    case 7: {  // a product of two values, with a residual
      Edge* y = c.qdq(c.node("MatMul", {x, c.qdq(c.transpose(x, {0, 1, 3, 2}), {0.125f, 120})}), scale());
      return c.qdq(c.node("Add", {x, y}), scale());
    }
    case 8: {  // weights of quarters, twice as wide, then as before
      const auto resized = [&](Edge* from, float by) {
        Edge* y = c.node("Resize", {from, nullptr, c.constant<float>({4}, {1, 1, by, by})},
                         c.attrs().set("mode", "linear"));
        return c.qdq(y, random() % 2 == 0 ? scale() : QdqCase::Scale{0.125f, 120});
      };
      return resized(resized(x, 2), 0.5f);
    }
    case 9:
      return c.qdq(c.transpose(c.qdq(c.transpose(x, {0, 1, 3, 2}), {0.125f, 120}), {0, 1, 3, 2}), scale());
    default:
      return c.qdq(c.node("MaxPool", {x},
                          c.attrs()
                              .set("kernel_shape", std::span<const int64_t>(three))
                              .set("pads", std::span<const int64_t>(pads))),
                   scale());
  }
}

TEST(Quantized, RandomGraphsOfScalesThatArePowersOfTwoStayTheSame) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    QdqCase c(seed % 2 == 1);
    const int64_t channels = seed % 3 == 0 ? 5 : 24;
    Edge* x = c.qdq(c.input({1 + seed % 2, channels, 4, 4}), {0.125f, 120});
    for (uint32_t i = 0; i < 1 + seed % 5; ++i) x = random_step(c, x, random, channels);
    c.output(x);
    EXPECT_EQ(c.optimized(seed % 4 == 0 ? 2 : 3), 0);
  }
}

}  // namespace
}  // namespace plimsoll
