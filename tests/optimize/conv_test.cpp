#include "graph_case.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

Edge* conv(GraphCase& c, Edge* x, int64_t out, int64_t in, int64_t kernel, bool bias = false) {
  const int64_t pads[] = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
  std::vector<Edge*> inputs = {x, c.weights({out, in, kernel, kernel})};
  if (bias) inputs.push_back(c.weights({out}));
  return c.node("Conv", inputs, c.attrs().set("pads", std::span<const int64_t>(pads)));
}

Edge* batch_norm(GraphCase& c, Edge* x, int64_t channels) {
  return c.node("BatchNormalization", {x, c.weights({channels}), c.weights({channels}), c.weights({channels}),
                                       c.positive({channels})});
}

TEST(ConvAffine, BatchNormalizationMulAndAdd) {
  GraphCase c;
  Edge* y = conv(c, c.input({-1, 3, 5, 5}), 4, 3, 3, true);
  if (find_op("", "BatchNormalization") != nullptr) y = batch_norm(c, y, 4);
  y = c.node("Mul", {c.weights({4, 1, 1}), y});
  c.output(c.node("Add", {y, c.weights({1, 4, 1, 1})}));
  EXPECT_TRUE(c.apply(fuse_conv_affine));
  EXPECT_EQ(c.node_count(), 1);
  EXPECT_EQ(c.fused("FusedConv"), 1);
}

TEST(ConvAffine, KeepsTheWeightsBytes) {
  GraphCase c;
  Edge* y = conv(c, c.input({1, 3, 5, 5}), 4, 3, 3);
  const std::byte* bytes = y->producer->input(1)->constant->data;
  c.output(c.node("Mul", {y, c.scalar(3)}));
  EXPECT_TRUE(c.apply(fuse_conv_affine));
  EXPECT_EQ(c.find("FusedConv")->input(1)->constant->data, bytes);
}

TEST(ConvAffine, NotOnASecondUseAnOutputOrAnotherAxis) {
  GraphCase c;
  Edge* x = c.input({1, 3, 4, 4});
  Edge* a = conv(c, x, 4, 3, 3);
  c.output(a);
  c.output(c.node("Mul", {a, c.scalar(3)}));
  Edge* b = conv(c, x, 4, 3, 3);
  c.output(c.node("Mul", {b, c.weights({4})}));
  Edge* d = conv(c, x, 4, 3, 3);
  c.output(c.node("Mul", {d, c.input({1, 4, 1, 1})}));
  EXPECT_FALSE(c.apply(fuse_conv_affine));
}

TEST(ConvAffine, ConvTransposeTakesABias) {
  GraphCase c;
  const int64_t strides[] = {2, 2};
  Edge* y = c.node("ConvTranspose", {c.input({1, 3, 4, 4}), c.weights({3, 2, 2, 2})},
                   c.attrs().set("strides", std::span<const int64_t>(strides)));
  c.output(c.node("Add", {y, c.weights({1, 2, 1, 1})}));
  EXPECT_TRUE(c.apply(fuse_conv_affine));
  EXPECT_EQ(c.node_count(), 1);
}

TEST(ConvResidual, ThenActivation) {
  GraphCase c;
  Edge* x = c.input({-1, 4, 5, 5});
  Edge* y = conv(c, conv(c, x, 4, 4, 1), 4, 4, 3, true);
  c.output(c.node("Relu", {c.node("Add", {x, y})}));
  c.optimize_all(2);
  EXPECT_EQ(c.node_count(), 2);
  EXPECT_EQ(c.count("Add"), 0);
}

TEST(ConvResidual, OfTwoConvolutionsTheLater) {
  GraphCase c;
  Edge* x = c.input({1, 4, 5, 5});
  Edge* first = conv(c, x, 4, 4, 1);
  Edge* second = conv(c, x, 4, 4, 3);
  Edge* weights = second->producer->input(1);
  c.output(c.node("Add", {second, first}));
  EXPECT_TRUE(c.apply(fuse_conv_residual));
  EXPECT_EQ(c.find("FusedConv")->input(1), weights);
}

TEST(ConvResidual, NotWhereItBroadcastsNorAfterAnActivation) {
  GraphCase c;
  Edge* x = c.input({1, 4, 5, 5});
  c.output(c.node("Add", {conv(c, x, 4, 4, 1), c.input({1, 4, 1, 1})}));
  c.output(c.node("Add", {c.node("Relu", {conv(c, x, 4, 4, 1)}), x}));
  Edge* shared = conv(c, x, 4, 4, 1);
  c.output(c.node("Add", {shared, shared}));
  EXPECT_FALSE(c.apply(fuse_conv_residual));
}

TEST(FuseActivations, EveryKind) {
  for (const char* op : {"Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "Clip"}) {
    GraphCase c;
    Edge* y = conv(c, c.input({1, 3, 4, 4}), 4, 3, 3);
    std::vector<Edge*> inputs = {y};
    if (std::string(op) == "Clip") inputs = {y, c.scalar(-0.5f), c.scalar(1.5f)};
    c.output(c.node(op, inputs));
    EXPECT_TRUE(c.apply(fuse_activations)) << op;
    EXPECT_EQ(c.node_count(), 1) << op;
  }
}

TEST(FuseActivations, NotAClipWithUnknownBoundsNorTwice) {
  GraphCase c;
  Edge* y = conv(c, c.input({1, 3, 4, 4}), 4, 3, 3);
  c.output(c.node("Clip", {y, c.input({}), c.scalar(1)}));
  Edge* z = c.node("Relu", {conv(c, c.input({1, 3, 4, 4}), 4, 3, 3)});
  c.output(c.node("Sigmoid", {z}));
  c.apply(fuse_activations);
  EXPECT_EQ(c.count("Clip"), 1);
  EXPECT_EQ(c.count("Sigmoid"), 1);
  EXPECT_EQ(c.count("Relu"), 0);
}

}  // namespace
}  // namespace plimsoll
