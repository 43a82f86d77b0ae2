#include "graph_case.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// A pooling of something computed, and its gradient, on channels-last tensors.
struct Pooled {
  GraphCase c;
  std::vector<int64_t> kernel{3, 3}, strides{2, 2}, pads{1, 1, 1, 1};
  Edge *x = nullptr, *y = nullptr, *dx = nullptr;

  AttributeList attributes() {
    return c.attrs()
        .set("channels_last", int64_t{1})
        .set("kernel_shape", std::span<const int64_t>(kernel))
        .set("strides", std::span<const int64_t>(strides))
        .set("pads", std::span<const int64_t>(pads));
  }
  void pool(const std::string& before = "Relu", int64_t channels = 70) {
    x = c.node(before, {c.input({2, 7, 9, channels})});
    y = c.node("MaxPool", {x}, attributes(), std::string(kPlimsollDomain));
    c.output(c.node("Exp", {y}));
    Edge* dy = c.input({2, 4, 5, channels});
    dx = c.node("PoolGradient", {dy, c.constant<int64_t>({4}, {2, channels, 7, 9}), x},
                attributes().set("kind", std::string_view("max")), std::string(kPlimsollDomain));
  }
  void relu_gradient() { dx = c.node("ReluGradient", {x, dx}, c.attrs(), std::string(kPlimsollDomain)); }
};

TEST(HoldPoolTaps, TheGradientDoesWithoutX) {
  Pooled p;
  p.pool("Exp");
  p.c.output(p.dx);
  EXPECT_TRUE(p.c.apply(hold_pool_taps));
  EXPECT_EQ(p.c.fused("MaxPool"), 0);
  EXPECT_EQ(p.c.fused("MaxPoolTaps"), 1);
  EXPECT_EQ(p.c.find("PoolGradient")->inputs[2], nullptr);
}

TEST(HoldPoolTaps, TheSignOfTheOutputIsThatOfX) {
  Pooled p;
  p.pool();
  p.relu_gradient();
  p.c.output(p.dx);
  EXPECT_TRUE(p.c.apply(hold_pool_taps));
  EXPECT_EQ(p.c.find("ReluGradient")->inputs[0], p.c.find("MaxPoolTaps")->outputs[0]);
  EXPECT_EQ(p.c.find("PoolGradient")->inputs[0], p.c.find("ReluGradient")->outputs[0]);
}

TEST(HoldPoolTaps, XThatOthersReadLaterIsHeldAnyway) {
  Pooled p;
  p.pool();
  p.c.output(p.c.node("Mul", {p.x, p.dx}));
  EXPECT_FALSE(p.c.apply(hold_pool_taps));
}

TEST(HoldPoolTaps, AReluGradientOfASumNeedsX) {
  Pooled p;
  p.pool();
  p.dx = p.c.node("Add", {p.dx, p.c.input({2, 7, 9, 70})});
  p.relu_gradient();
  p.c.output(p.dx);
  EXPECT_FALSE(p.c.apply(hold_pool_taps));
}

TEST(HoldPoolTaps, WindowsOfMoreThanAByteStay) {
  Pooled p;
  p.kernel = {17, 17}, p.strides = {1, 1}, p.pads = {8, 8, 8, 8};
  p.x = p.c.node("Exp", {p.c.input({1, 5, 4, 3})});
  p.y = p.c.node("MaxPool", {p.x}, p.attributes(), std::string(kPlimsollDomain));
  p.c.output(p.c.node("Exp", {p.y}));
  p.c.output(p.c.node("PoolGradient",
                      {p.c.input({1, 5, 4, 3}), p.c.constant<int64_t>({4}, {1, 3, 5, 4}), p.x},
                      p.attributes().set("kind", std::string_view("max")), std::string(kPlimsollDomain)));
  EXPECT_FALSE(p.c.apply(hold_pool_taps));
}

TEST(HoldPoolTaps, AnotherWindowsGradientStays) {
  Pooled p;
  p.x = p.c.node("Exp", {p.c.input({2, 7, 9, 70})});
  p.c.output(p.c.node("MaxPool", {p.x}, p.attributes(), std::string(kPlimsollDomain)));
  p.kernel = {2, 2}, p.pads = {0, 0, 0, 0};
  p.c.output(p.c.node("PoolGradient",
                      {p.c.input({2, 3, 4, 70}), p.c.constant<int64_t>({4}, {2, 70, 7, 9}), p.x},
                      p.attributes().set("kind", std::string_view("max")), std::string(kPlimsollDomain)));
  EXPECT_FALSE(p.c.apply(hold_pool_taps));
}

}  // namespace
}  // namespace plimsoll
