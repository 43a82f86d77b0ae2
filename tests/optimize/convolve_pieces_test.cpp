#include "graph_case.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

constexpr int64_t kLarge = 96;  // times 96 times 16 floats: above half a megabyte

struct Conv {
  int64_t out = 5, kernel = 3, stride = 1, groups = 1;
};

Edge* conv(GraphCase& c, Edge* x, int64_t in, const Conv& k) {
  const int64_t pad = k.kernel / 2, pads[] = {pad, pad, pad, pad}, strides[] = {k.stride, k.stride};
  return c.node("Conv", {x, c.weights({k.out, in / k.groups, k.kernel, k.kernel}), c.weights({k.out})},
                c.attrs()
                    .set("pads", std::span<const int64_t>(pads))
                    .set("strides", std::span<const int64_t>(strides))
                    .set("group", k.groups));
}

// Made by a convolution, so that it is channels last.
Edge* piece(GraphCase& c, int64_t channels, int64_t size = kLarge, int64_t batch = 1) {
  return c.node("Relu", {conv(c, c.input({batch, 2, size, size}), 2, {.out = channels})});
}

Edge* concat(GraphCase& c, const std::vector<Edge*>& pieces) {
  return c.node("Concat", pieces, c.attrs().set("axis", int64_t{1}));
}

// What is left of the Concats after all the passes, whose answers must stay the same.
int concats(GraphCase& c, Edge* y) {
  c.output(y);
  c.optimize_all();
  return c.count("Concat");
}

TEST(ConvolvePieces, ASumOfConvolutions) {
  for (const Conv& k : {Conv{}, Conv{.out = 3, .kernel = 1}, Conv{.out = 4, .kernel = 3, .stride = 2}}) {
    GraphCase c;
    Edge* y = concat(c, {piece(c, 7, kLarge, -1), piece(c, 9, kLarge, -1)});
    EXPECT_EQ(concats(c, c.node("Relu", {conv(c, y, 16, k)})), 0);
    EXPECT_EQ(c.fused("FusedConv"), 4);
  }
}

TEST(ConvolvePieces, ThreeWithAnAddend) {
  GraphCase c;
  Edge* z = piece(c, 2);
  Edge* y = concat(c, {piece(c, 10), piece(c, 1), z, z});
  EXPECT_EQ(concats(c, c.node("Add", {conv(c, y, 15, {.out = 2}), z})), 0);
  EXPECT_EQ(c.fused("FusedConv"), 7);
}

TEST(ConvolvePieces, NotWhereItCostsMoreOrIsSeen) {
  {
    GraphCase c;  // as many come out as go in
    Edge* y = concat(c, {piece(c, 8), piece(c, 8)});
    EXPECT_EQ(concats(c, conv(c, y, 16, {.out = 16})), 1);
  }
  {
    GraphCase c;  // small
    Edge* y = concat(c, {piece(c, 8, 20), piece(c, 8, 20)});
    EXPECT_EQ(concats(c, conv(c, y, 16, {})), 1);
  }
  {
    GraphCase c;  // seen by another
    Edge* y = concat(c, {piece(c, 8), piece(c, 8)});
    c.output(c.node("Relu", {y}));
    EXPECT_EQ(concats(c, conv(c, y, 16, {})), 1);
  }
  {
    GraphCase c;  // groups
    Edge* y = concat(c, {piece(c, 8), piece(c, 8)});
    EXPECT_EQ(concats(c, conv(c, y, 16, {.out = 4, .groups = 2})), 1);
  }
}

}  // namespace
}  // namespace plimsoll
