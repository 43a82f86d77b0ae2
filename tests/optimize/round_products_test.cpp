#include "graph_case.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

OptimizeOptions asked() {
  OptimizeOptions options;
  options.round_products = true;
  return options;
}

bool is_rounded(const Node* node) {
  return node != nullptr && node->attribute("rounded") != nullptr;
}

// Whether MatMul of x with weights of this shape is rounded.
bool rounds_matmul(std::vector<int64_t> weights, const OptimizeOptions& options = asked()) {
  GraphCase c;
  c.output(c.node("MatMul", {c.input({4, weights[0]}), c.weights(weights)}));
  c.ready();
  const bool changed = round_products(c.root(), options);
  const bool rounded = is_rounded(c.find("FusedMatMul"));
  EXPECT_EQ(changed, rounded);
  return rounded;
}

TEST(RoundProducts, TakesProductsWithConstants) {
  EXPECT_TRUE(rounds_matmul({64, 32}));
  EXPECT_TRUE(rounds_matmul({32, 16}));
}

TEST(RoundProducts, LeavesSmallOnes) {
  EXPECT_FALSE(rounds_matmul({31, 64}));
  EXPECT_FALSE(rounds_matmul({64, 15}));
}

TEST(RoundProducts, OnlyWhereItIsAskedFor) {
  EXPECT_FALSE(rounds_matmul({64, 64}, {}));
}

TEST(RoundProducts, LeavesProductsOfActivations) {
  GraphCase c;
  c.output(c.node("MatMul", {c.input({64, 64}), c.input({64, 64})}));
  c.ready();
  EXPECT_FALSE(round_products(c.root(), asked()));
}

struct ConvKind {
  int64_t channels = 32, kernel = 3, groups = 1;
};

// Whether a convolution is rounded; one that is, is not computed by Winograd's way.
bool rounds_conv(const ConvKind& k) {
  GraphCase c;
  const int64_t pads[] = {1, 1, 1, 1};
  c.output(c.node("Conv",
                  {c.input({1, k.channels, 112, 112}),
                   c.weights({k.channels, k.channels / k.groups, k.kernel, k.kernel})},
                  c.attrs().set("pads", std::span<const int64_t>(pads)).set("group", k.groups)));
  c.ready();
  use_channels_last(c.root(), asked());
  infer_graph(c.root());
  round_products(c.root(), asked());
  infer_graph(c.root());
  use_winograd(c.root(), asked());
  const Node* conv = c.find("Conv");
  EXPECT_FALSE(is_rounded(conv) && conv->attribute("winograd") != nullptr);
  return is_rounded(conv);
}

TEST(RoundProducts, TakesConvolutions) {
  EXPECT_TRUE(rounds_conv({}));
  EXPECT_TRUE(rounds_conv({.kernel = 1}));
  EXPECT_FALSE(rounds_conv({.groups = 2}));
  EXPECT_FALSE(rounds_conv({.groups = 32}));
  EXPECT_FALSE(rounds_conv({.channels = 8}));
}

}  // namespace
}  // namespace plimsoll
