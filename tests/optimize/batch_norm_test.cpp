#include "graph_case.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// Relu of normalized x plus what is given, and the gradient of it all, on channels-last tensors.
struct Layer {
  GraphCase c;
  Edge *x = nullptr, *y = nullptr;
  std::vector<Edge*> normalized;

  AttributeList attributes() { return c.attrs().set("channels_last", int64_t{1}); }
  void normalize(int64_t channels = 20) {
    x = c.input({2, 3, 5, channels});
    normalized = c.nodes(
        "BatchNormalization",
        {x, c.weights({channels}), c.weights({channels}), c.weights({channels}), c.positive({channels})}, 3,
        attributes().set("training_mode", int64_t{1}), std::string(kPlimsollDomain));
    y = normalized[0];
  }
  void relu() { y = c.node("Relu", {y}); }
  // The gradient of what relu() made.
  void gradient() {
    Edge* dy = c.node("ReluGradient", {y, c.input({2, 3, 5, 20})}, c.attrs(), std::string(kPlimsollDomain));
    for (Edge* edge : c.nodes("BatchNormalizationGradient", {x, dy, normalized[0]->producer->inputs[1]}, 3,
                              attributes(), std::string(kPlimsollDomain)))
      c.output(edge);
  }
  void outputs() {
    c.output(y);
    c.output(normalized[1]);
    c.output(normalized[2]);
  }
};

TEST(FuseBatchNorm, ReluAndItsGradient) {
  Layer l;
  l.normalize();
  l.relu();
  l.gradient();
  l.outputs();
  EXPECT_TRUE(l.c.apply(fuse_batch_norm));
  EXPECT_EQ(l.c.node_count(), 2);
  EXPECT_EQ(l.c.fused("ReluGradient"), 0);
  EXPECT_EQ(l.c.find("BatchNormalizationGradient")->inputs.size(), 6u);
}

TEST(FuseBatchNorm, AResidualSumKeepsTheMask) {
  Layer l;
  Edge* other = l.c.input({2, 3, 5, 20});
  l.normalize();
  l.y = l.c.node("Add", {other, l.y});
  l.relu();
  l.gradient();
  l.outputs();
  EXPECT_TRUE(l.c.apply(fuse_batch_norm));
  EXPECT_EQ(l.c.node_count(), 3);  // what the sum's sign says, normalized x does not
  EXPECT_EQ(l.c.fused("ReluGradient"), 1);
  EXPECT_EQ(l.c.find("BatchNormalizationGradient")->inputs.size(), 5u);
}

TEST(FuseBatchNorm, AnAddendThatComesLaterStaysOutside) {
  Layer l;
  l.normalize();
  l.y = l.c.node("Add", {l.y, l.c.node("Exp", {l.c.input({2, 3, 5, 20})})});
  l.relu();
  l.outputs();
  l.c.apply(fuse_batch_norm);
  EXPECT_EQ(l.c.count("Add"), 1);
  EXPECT_EQ(l.c.count("Relu"), 1);
}

TEST(FuseBatchNorm, WhatOthersReadStays) {
  Layer l;
  l.normalize();
  l.c.output(l.c.node("Exp", {l.y}));
  l.relu();
  l.gradient();
  l.outputs();
  l.c.apply(fuse_batch_norm);
  EXPECT_EQ(l.c.count("Relu"), 1);
  EXPECT_EQ(l.c.fused("ReluGradient"), 1);
}

TEST(FuseBatchNorm, OddChannels) {
  Layer l;
  l.normalize(3);
  l.relu();
  l.outputs();
  EXPECT_TRUE(l.c.apply(fuse_batch_norm));
  EXPECT_EQ(l.c.node_count(), 1);
}

}  // namespace
}  // namespace plimsoll
