#include <cmath>

#include "graph_case.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// ---- activations written out ------------------------------------------------------------------------

Edge* clip06(GraphCase& c, Edge* x) {
  return c.node("Clip", {x, c.scalar(0), c.scalar(6)});
}

TEST(Activations, Silu) {
  GraphCase c;
  Edge* x = c.node("Neg", {c.input({2, 3})});
  c.output(c.node("Mul", {x, c.node("Sigmoid", {x})}));
  EXPECT_TRUE(c.apply(recognize_activations));
  EXPECT_EQ(c.fused("Silu"), 1);
  EXPECT_EQ(c.node_count(), 2);
}

TEST(Activations, NoSiluOfAnotherValueOrASharedGate) {
  GraphCase c;
  Edge* x = c.input({2, 3});
  Edge* gate = c.node("Sigmoid", {x});
  c.output(c.node("Mul", {x, gate}));
  c.output(gate);
  c.output(c.node("Mul", {c.input({2, 3}), c.node("Sigmoid", {c.node("Neg", {x})})}));
  EXPECT_FALSE(c.apply(recognize_activations));
}

TEST(Activations, HardSwishDividedLast) {
  GraphCase c;
  Edge* x = c.input({2, 3});
  Edge* gate = clip06(c, c.node("Add", {x, c.scalar(3)}));
  c.output(c.node("Div", {c.node("Mul", {x, gate}), c.scalar(6)}));
  EXPECT_TRUE(c.apply(recognize_activations));
  EXPECT_EQ(c.count("HardSwish"), 1);
  EXPECT_EQ(c.node_count(), 1);
}

TEST(Activations, HardSwishDividedFirst) {
  GraphCase c;
  Edge* x = c.input({2, 3});
  Edge* gate = clip06(c, c.node("Add", {c.scalar(3), x}));
  c.output(c.node("Mul", {c.node("Mul", {gate, c.scalar(1.0f / 6)}), x}));
  EXPECT_TRUE(c.apply(recognize_activations));
  EXPECT_EQ(c.count("HardSwish"), 1);
  EXPECT_EQ(c.node_count(), 1);
}

TEST(Activations, NoHardSwishWithOtherNumbers) {
  GraphCase c;
  Edge* x = c.input({2, 3});
  Edge* gate = clip06(c, c.node("Add", {x, c.scalar(2)}));
  c.output(c.node("Div", {c.node("Mul", {x, gate}), c.scalar(6)}));
  Edge* other = clip06(c, c.node("Add", {x, c.scalar(3)}));
  c.output(c.node("Div", {c.node("Mul", {x, other}), c.scalar(5)}));
  Edge* shared = clip06(c, c.node("Add", {x, c.scalar(3)}));
  c.output(shared);
  c.output(c.node("Div", {c.node("Mul", {x, shared}), c.scalar(6)}));
  EXPECT_FALSE(c.apply(recognize_activations));
}

TEST(Activations, GeluInThreeGroupings) {
  for (int form = 0; form < 3; ++form) {
    GraphCase c;
    Edge* x = c.node("Neg", {c.input({-1, 8})});
    Edge* erf = c.node("Erf", {c.node("Div", {x, c.scalar(std::sqrt(2.0f))})});
    Edge* sum = c.node("Add", {erf, c.scalar(1)});
    if (form == 0) c.output(c.node("Mul", {c.node("Mul", {x, sum}), c.scalar(0.5f)}));
    if (form == 1) c.output(c.node("Mul", {c.node("Mul", {x, c.scalar(0.5f)}), sum}));
    if (form == 2) c.output(c.node("Mul", {x, c.node("Div", {sum, c.scalar(2)})}));
    EXPECT_TRUE(c.apply(recognize_gelu)) << form;
    EXPECT_EQ(c.count("Gelu"), 1) << form;
    EXPECT_EQ(c.node_count(), 2) << form;
  }
}

TEST(Activations, NoGeluOfTwoValuesOrOtherNumbers) {
  GraphCase c;
  Edge* x = c.input({4, 8});
  Edge* y = c.input({4, 8});
  Edge* erf = c.node("Erf", {c.node("Div", {x, c.scalar(std::sqrt(2.0f))})});
  c.output(c.node("Mul", {c.node("Mul", {y, c.node("Add", {erf, c.scalar(1)})}), c.scalar(0.5f)}));
  Edge* other = c.node("Erf", {c.node("Div", {x, c.scalar(1.5f)})});
  c.output(c.node("Mul", {c.node("Mul", {x, c.node("Add", {other, c.scalar(1)})}), c.scalar(0.5f)}));
  EXPECT_FALSE(c.apply(recognize_gelu));
}

// ---- LayerNormalization -------------------------------------------------------------------------------

Edge* mean(GraphCase& c, Edge* x, int64_t axis) {
  const int64_t axes[] = {axis};
  return c.node("ReduceMean", {x}, c.attrs().set("axes", std::span<const int64_t>(axes)));
}

Edge* normalized(GraphCase& c, Edge* x, int64_t axis, int64_t second_axis) {
  Edge* centered = c.node("Sub", {x, mean(c, x, axis)});
  Edge* variance = mean(c, c.node("Pow", {centered, c.scalar(2)}), second_axis);
  Edge* root = c.node("Sqrt", {c.node("Add", {variance, c.scalar(1e-5f)})});
  return c.node("Div", {centered, root});
}

TEST(LayerNorm, FromReduceMean) {
  GraphCase c;
  Edge* x = c.input({-1, 3, 8});
  Edge* y = c.node("Mul", {normalized(c, x, -1, 2), c.weights({8})});
  c.output(c.node("Add", {c.weights({1, 1, 8}), y}));
  EXPECT_TRUE(c.apply(recognize_layer_normalization));
  EXPECT_EQ(c.count("LayerNormalization"), 1);
  EXPECT_EQ(c.node_count(), 1);
}

TEST(LayerNorm, WithoutBias) {
  GraphCase c;
  Edge* x = c.input({2, 8});
  c.output(c.node("Mul", {normalized(c, x, -1, -1), c.weights({8})}));
  EXPECT_TRUE(c.apply(recognize_layer_normalization));
  EXPECT_EQ(c.node_count(), 1);
}

TEST(LayerNorm, NotOverAnotherAxis) {
  GraphCase c;
  Edge* x = c.input({2, 8, 8});
  c.output(c.node("Mul", {normalized(c, x, 1, 1), c.weights({8})}));
  c.output(c.node("Mul", {normalized(c, x, -1, 1), c.weights({8})}));
  EXPECT_FALSE(c.apply(recognize_layer_normalization));
}

TEST(LayerNorm, NotIfTheScaleIsNoVector) {
  GraphCase c;
  Edge* x = c.input({2, 8});
  c.output(c.node("Mul", {normalized(c, x, -1, -1), c.weights({2, 8})}));
  EXPECT_FALSE(c.apply(recognize_layer_normalization));
}

// ---- ScaleShift ---------------------------------------------------------------------------------------

Edge* batch_norm(GraphCase& c, Edge* x, int64_t channels) {
  return c.node("BatchNormalization", {x, c.weights({channels}), c.weights({channels}), c.weights({channels}),
                                       c.positive({channels})});
}

TEST(ScaleShiftPass, BatchNormalizationThenRelu) {
  if (find_op("", "BatchNormalization") == nullptr) GTEST_SKIP();
  GraphCase c;
  c.output(c.node("Relu", {batch_norm(c, c.input({-1, 4, 3, 3}), 4)}));
  c.optimize_all();
  EXPECT_EQ(c.fused("ScaleShift"), 1);
  EXPECT_EQ(c.node_count(), 1);
}

TEST(ScaleShiftPass, MulAndAddPerChannelAndScalars) {
  GraphCase c;
  Edge* y = c.node("Mul", {c.input({2, 4, 3, 3}), c.weights({4, 1, 1})});
  y = c.node("Add", {c.weights({1, 4, 1, 1}), y});
  y = c.node("Sub", {c.scalar(1), c.node("Div", {y, c.scalar(3)})});
  c.output(y);
  EXPECT_TRUE(c.apply(fuse_scale_shift));
  EXPECT_EQ(c.fused("ScaleShift"), 1);
  EXPECT_EQ(c.node_count(), 1);
}

TEST(ScaleShiftPass, WithAnAddend) {
  GraphCase c;
  Edge* y = c.node("Mul", {c.input({-1, 4, 3, 3}), c.weights({4, 1, 1})});
  c.output(c.node("Add", {y, c.input({-1, 4, 3, 3})}));
  EXPECT_TRUE(c.apply(fuse_scale_shift));
  EXPECT_EQ(c.node_count(), 1);
}

TEST(ScaleShiftPass, NotForOneStepNorWhereItBroadcasts) {
  GraphCase c;
  Edge* x = c.input({1, 4, 1, 3});
  c.output(c.node("Mul", {x, c.weights({4, 1, 1})}));
  c.output(c.node("Add", {c.node("Mul", {x, c.weights({4, 5, 1})}), c.weights({4, 1, 1})}));
  c.output(c.node("Add", {c.node("Mul", {x, c.scalar(2)}), c.input({1, 4, 2, 3})}));
  EXPECT_FALSE(c.apply(fuse_scale_shift));
}

// ---- matrix products ----------------------------------------------------------------------------------

TEST(MatMulPass, ScaleBiasAndActivation) {
  GraphCase c;
  Edge* y = c.node("MatMul", {c.node("Mul", {c.input({-1, 3, 8}), c.scalar(0.5f)}), c.weights({8, 4})});
  y = c.node("Add", {c.weights({4}), c.node("Div", {y, c.scalar(4)})});
  c.output(c.node("Relu", {y}));
  c.optimize_all();
  ASSERT_EQ(c.node_count(), 1);
  EXPECT_EQ(c.find("FusedMatMul")->attribute("alpha")->f, 0.125f);
  EXPECT_EQ(c.find("FusedMatMul")->attribute("activation")->s, "Relu");
}

TEST(MatMulPass, NoBiasAcrossRowsNorOfASecondUse) {
  GraphCase c;
  Edge* y = c.node("MatMul", {c.input({3, 8}), c.weights({8, 4})});
  c.output(c.node("Add", {y, c.weights({3, 1})}));
  Edge* z = c.node("MatMul", {c.input({3, 8}), c.weights({8, 4})});
  c.output(z);
  c.output(c.node("Add", {z, c.weights({4})}));
  EXPECT_FALSE(c.apply(fuse_matmul));
}

TEST(MatMulPass, GemmWithTransposedWeights) {
  GraphCase c;
  const AttributeList attributes = c.attrs().set("transB", int64_t{1}).set("beta", 0.5f).set("alpha", 2.0f);
  c.output(c.node("Gemm", {c.input({-1, 8}), c.weights({4, 8}), c.weights({4})}, attributes));
  EXPECT_TRUE(c.apply(fuse_matmul));
  EXPECT_EQ(c.fused("FusedMatMul"), 1);
}

TEST(MatMulPass, GemmWithAColumnStays) {
  GraphCase c;
  c.output(c.node("Gemm", {c.input({3, 8}), c.weights({8, 4}), c.weights({3, 1})}));
  EXPECT_FALSE(c.apply(fuse_matmul));
}

// [b, t, h * d] -> heads -> scores -> values -> [b, t, h * d]
TEST(MatMulPass, AttentionKeepsNoTranspose) {
  GraphCase c;
  Edge* x = c.input({-1, -2, 8});
  auto heads = [&](const std::vector<int64_t>& perm) {
    Edge* p = c.node("Add", {c.node("MatMul", {x, c.weights({8, 8})}), c.weights({8})});
    return c.transpose(c.node("Reshape", {p, c.constant<int64_t>({4}, {0, 0, 2, 4})}), perm);
  };
  Edge* q = heads({0, 2, 1, 3});
  Edge* k = heads({0, 2, 3, 1});
  Edge* v = heads({0, 2, 1, 3});
  Edge* scores = c.node("Div", {c.node("MatMul", {q, k}), c.scalar(2)});
  Edge* p = c.node("Softmax", {scores}, c.attrs().set("axis", int64_t{-1}));
  Edge* context = c.transpose(c.node("MatMul", {p, v}), {0, 2, 1, 3});
  Edge* joined = c.node("Reshape", {context, c.constant<int64_t>({3}, {0, 0, 8})});
  Edge* y = c.node("Add", {c.node("MatMul", {joined, c.weights({8, 8})}), c.weights({8})});
  c.output(c.node("Add", {x, y}));
  c.optimize_all();
  EXPECT_EQ(c.count("Transpose"), 0);
  EXPECT_EQ(c.count("Add"), 0);
  EXPECT_EQ(c.count("Div"), 0);
  EXPECT_EQ(c.fused("FusedMatMul"), 4);
  EXPECT_EQ(c.fused("FusedAttention"), 1);
}

TEST(MatMulPass, ATransposeThatOthersReadStays) {
  GraphCase c;
  Edge* t = c.transpose(c.input({3, 8}), {1, 0});
  c.output(c.node("Neg", {t}));
  c.output(c.node("MatMul", {t, c.weights({3, 4})}));
  EXPECT_FALSE(c.apply(fuse_matmul_transposes));
}

TEST(MatMulPass, NoResidualOfAnotherShape) {
  GraphCase c;
  Edge* y = c.node("MatMul", {c.input({3, 8}), c.weights({8, 4})});
  c.output(c.node("Add", {y, c.input({1, 4})}));
  Edge* z = c.node("MatMul", {c.input({-1, 8}), c.weights({8, 4})});
  c.output(c.node("Add", {z, c.input({-2, 4})}));
  c.ready();
  EXPECT_FALSE(fuse_matmul_residual(c.root(), {}));
}

TEST(Transposes, MergeAndCancel) {
  GraphCase c;
  Edge* x = c.input({2, 3, 4});
  c.output(c.node("Neg", {c.transpose(c.transpose(x, {2, 0, 1}), {1, 2, 0})}));
  c.output(c.transpose(c.transpose(x, {2, 0, 1}), {2, 0, 1}));
  EXPECT_TRUE(c.apply(simplify_transposes));
  EXPECT_EQ(c.count("Transpose"), 1);
}

// The columns of a product stay together in memory: another last axis is not the product's business.
TEST(MatMulTransposes, ALaterTransposeThatMovesTheLastAxisStays) {
  for (const bool gemm : {false, true}) {
    GraphCase c;
    Edge* product = c.node(gemm ? "Gemm" : "MatMul", {c.input({2, 3}), c.weights({3, 4})});
    c.output(c.transpose(product, {1, 0}));
    c.optimize_all();
    EXPECT_EQ(c.count("Transpose"), 1) << gemm;
  }
}

// ---- dynamic quantization ------------------------------------------------------------------------------

struct DynamicProduct {
  GraphCase c;
  Edge *sums = nullptr, *factor = nullptr, *zero = nullptr;
  explicit DynamicProduct(const std::vector<int64_t>& scale_dims = {}) {
    Edge* x = c.node("Neg", {c.input({-1, 4})});
    const std::vector<Edge*> quantized = c.nodes("DynamicQuantizeLinear", {x}, 3, c.attrs());
    Edge* weights = c.constant<int8_t>({4, 3}, {1, -2, 3, 4, 5, -6, 7, 8, 9, 10, -11, 12});
    zero = quantized[2];
    sums = c.node("MatMulInteger", {quantized[0], weights, zero, c.constant<int8_t>({}, {2})});
    const std::vector<float> scales =
        scale_dims.empty() ? std::vector<float>{0.25f} : std::vector<float>{0.25f, 2, 3};
    factor = c.node("Mul", {quantized[1], c.constant<float>(scale_dims, scales)});
  }
  Edge* scaled() { return c.node("Mul", {c.node("Cast", {sums}, c.attrs().set("to", int64_t{1})), factor}); }
};

TEST(IntegerMatMul, TakesScalesAndBias) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{}, std::vector<int64_t>{3}}) {
    DynamicProduct p(dims);
    p.c.output(p.c.node("Add", {p.c.constant<float>({3}, {1, 2, 3}), p.scaled()}));
    EXPECT_TRUE(p.c.apply(fuse_integer_matmul));
    EXPECT_EQ(p.c.count("DynamicQuantizeMatMul", "com.microsoft"), 1);
    EXPECT_EQ(p.c.node_count(), 2);
  }
}

TEST(IntegerMatMul, WhatOthersQuantizeTooIsQuantizedOnce) {
  DynamicProduct p;
  p.c.output(p.scaled());
  p.c.output(p.zero);
  EXPECT_TRUE(p.c.apply(fuse_integer_matmul));
  EXPECT_EQ(p.c.count("MatMulIntegerToFloat", "com.microsoft"), 1);
  EXPECT_EQ(p.c.count("DynamicQuantizeLinear"), 1);
}

TEST(IntegerMatMul, LeavesABiasOfAnotherShape) {
  DynamicProduct p;
  p.c.output(p.c.node("Add", {p.scaled(), p.c.constant<float>({1, 1}, {1})}));
  EXPECT_TRUE(p.c.apply(fuse_integer_matmul));
  EXPECT_EQ(p.c.count("DynamicQuantizeMatMul", "com.microsoft"), 1);
  EXPECT_EQ(p.c.count("Add"), 1);
}

TEST(IntegerMatMul, NotIfTheSumsAreUsed) {
  DynamicProduct p;
  p.c.output(p.scaled());
  p.c.output(p.sums);
  EXPECT_FALSE(p.c.apply(fuse_integer_matmul));
}

TEST(IntegerMatMul, NotIfTheFactorIsNoProductOfScales) {
  DynamicProduct p;
  p.factor = p.c.constant<float>({1, 3}, {1, 2, 3});
  p.c.output(p.scaled());
  EXPECT_FALSE(p.c.apply(fuse_integer_matmul));
}

}  // namespace
}  // namespace plimsoll
