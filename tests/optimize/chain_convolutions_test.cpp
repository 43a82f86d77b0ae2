#include "graph_case.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

struct Window {
  int64_t kernel = 1, stride = 1, groups = 1;
};

Edge* conv(GraphCase& c, Edge* x, int64_t in, int64_t out, const Window& w = {}) {
  const int64_t pad = w.kernel / 2, pads[] = {pad, pad, pad, pad}, strides[] = {w.stride, w.stride};
  return c.node("Conv", {x, c.weights({out, in / w.groups, w.kernel, w.kernel}), c.weights({out})},
                c.attrs()
                    .set("pads", std::span<const int64_t>(pads))
                    .set("strides", std::span<const int64_t>(strides))
                    .set("group", w.groups));
}
Edge* depthwise(GraphCase& c, Edge* x, int64_t channels, int64_t kernel = 3, int64_t stride = 1) {
  return conv(c, x, channels, channels, {kernel, stride, channels});
}

// Chains after all the passes, whose answers must stay the same.
int chains(GraphCase& c, Edge* y) {
  c.output(y);
  c.optimize_all();
  return c.fused("ConvChain");
}

constexpr int64_t kLarge = 96;  // times 96 times 16 floats: above half a megabyte

TEST(ChainConvolutions, ExpansionDepthwiseProjection) {
  GraphCase c;
  Edge* y = c.node("Relu", {conv(c, c.input({-1, 4, kLarge, kLarge}), 4, 16)});
  y = c.node("HardSwish", {depthwise(c, y, 16, 3, 2)});
  EXPECT_EQ(chains(c, conv(c, y, 16, 5)), 1);
  EXPECT_EQ(c.find("ConvChain")->attribute("group")->ints.size(), 2u);  // a quarter is between the last two
}

TEST(ChainConvolutions, ThreeWithAnAddend) {
  GraphCase c;
  Edge* x = c.input({1, 16, kLarge, kLarge});
  Edge* y = c.node("Clip", {conv(c, x, 16, 16), c.scalar(0), c.scalar(6)});
  y = c.node("Sigmoid", {depthwise(c, y, 16, 5)});
  EXPECT_EQ(chains(c, c.node("Add", {conv(c, y, 16, 16), x})), 1);
  EXPECT_EQ(c.find("ConvChain")->attribute("group")->ints.size(), 3u);
}

TEST(ChainConvolutions, DepthwiseFirst) {
  GraphCase c;
  Edge* y = c.node("Relu", {depthwise(c, c.input({1, 16, kLarge, kLarge}), 16)});
  EXPECT_EQ(chains(c, c.node("Relu", {conv(c, y, 16, 3)})), 1);
}

TEST(ChainConvolutions, NotWhereItWouldNotHelpOrIsSeen) {
  {
    GraphCase c;  // small
    EXPECT_EQ(chains(c, depthwise(c, conv(c, c.input({1, 4, 30, 30}), 4, 16), 16)), 0);
  }
  {
    GraphCase c;  // seen by another
    Edge* y = conv(c, c.input({1, 4, kLarge, kLarge}), 4, 16);
    c.output(y);
    EXPECT_EQ(chains(c, depthwise(c, y, 16)), 0);
  }
  {
    GraphCase c;  // no depthwise one
    EXPECT_EQ(chains(c, conv(c, conv(c, c.input({1, 4, kLarge, kLarge}), 4, 16), 16, 16)), 0);
  }
  {
    GraphCase c;  // the height is open
    EXPECT_EQ(chains(c, depthwise(c, conv(c, c.input({1, 4, -1, kLarge}), 4, 16), 16)), 0);
  }
}

}  // namespace
}  // namespace plimsoll
