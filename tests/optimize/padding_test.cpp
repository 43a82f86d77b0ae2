#include "graph_case.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

using Ints = std::vector<int64_t>;

Edge* pad(GraphCase& c, Edge* x, const Ints& pads, float value = 0) {
  return c.node("Pad", {x, c.constant<int64_t>({static_cast<int64_t>(pads.size())}, pads), c.scalar(value)});
}

Edge* pool(GraphCase& c, Edge* x, const Ints& kernel, const Ints& pads = {}) {
  AttributeList attributes = c.attrs();
  attributes.set("kernel_shape", std::span<const int64_t>(kernel));
  if (!pads.empty()) attributes.set("pads", std::span<const int64_t>(pads));
  return c.node("AveragePool", {x}, attributes);
}

TEST(Padding, OfAnAverageIsCounted) {
  GraphCase c;
  c.output(pool(c, pad(c, c.input({2, 3, -1, 7}), {0, 0, 1, 2, 0, 0, 1, 0}), {3, 3}));
  EXPECT_TRUE(c.apply(fuse_padding));
  EXPECT_EQ(c.node_count(), 1);
  EXPECT_EQ(attribute_or(*c.find("AveragePool"), "count_include_pad", int64_t{0}), 1);
}

TEST(Padding, OfAConvolutionAddsToItsOwn) {
  GraphCase c;
  Edge* x = pad(c, c.input({1, 2, 5, -1}), {0, 0, 0, 4, 0, 0, 1, 0});
  const int64_t pads[] = {1, 0, 1, 2};
  c.output(
      c.node("Conv", {x, c.weights({3, 2, 3, 3})}, c.attrs().set("pads", std::span<const int64_t>(pads))));
  EXPECT_TRUE(c.apply(fuse_padding));
  EXPECT_EQ(c.node_count(), 1);
  const auto found = integers_attribute(*c.find("Conv"), "pads");
  EXPECT_EQ(Ints(found.begin(), found.end()), (Ints{1, 4, 2, 2}));
}

TEST(Padding, StaysForOthersThatReadIt) {
  GraphCase c;
  Edge* x = pad(c, c.input({1, 2, 5, 5}), {0, 0, 1, 1, 0, 0, 1, 1});
  c.output(c.node("Conv", {x, c.weights({3, 2, 3, 3})}));
  c.output(c.node("Relu", {x}));
  EXPECT_TRUE(c.apply(fuse_padding));
  EXPECT_EQ(c.count("Pad"), 1);
}

TEST(Padding, NotOfOtherValuesAxesOrModes) {
  GraphCase c;
  Edge* x = c.input({1, 2, 5, 5});
  c.output(pool(c, pad(c, x, {0, 0, 1, 1, 0, 0, 1, 1}, 0.5f), {3, 3}));
  c.output(pool(c, pad(c, x, {0, 1, 1, 1, 0, 0, 1, 1}), {3, 3}));
  c.output(pool(c, pad(c, x, {0, 0, 1, 1, 0, 0, -1, 1}), {3, 3}));
  c.output(pool(c, pad(c, x, {0, 0, 3, 1, 0, 0, 1, 1}), {3, 3}));                // no window may be outside
  c.output(pool(c, pad(c, x, {0, 0, 1, 1, 0, 0, 1, 1}), {3, 3}, {1, 1, 1, 1}));  // its own is not counted
  Edge* pads = c.constant<int64_t>({8}, {0, 0, 1, 1, 0, 0, 1, 1});
  c.output(
      c.node("Conv", {c.node("Pad", {x, pads}, c.attrs().set("mode", "edge")), c.weights({3, 2, 3, 3})}));
  Edge* same = pad(c, x, {0, 0, 1, 1, 0, 0, 1, 1});
  c.output(c.node("Conv", {same, c.weights({3, 2, 3, 3})}, c.attrs().set("auto_pad", "SAME_UPPER")));
  EXPECT_FALSE(c.apply(fuse_padding));
}

}  // namespace
}  // namespace plimsoll
