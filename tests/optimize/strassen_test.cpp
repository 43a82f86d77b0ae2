#include "graph_case.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// Whether x times weights is made by Strassen's way.
bool takes_matmul(std::vector<int64_t> x, std::vector<int64_t> weights, const OptimizeOptions& options = {}) {
  GraphCase c;
  c.output(c.node("MatMul", {c.input(x), c.weights(weights)}));
  c.ready();
  const bool changed = use_strassen(c.root(), options);
  const Node* fused = c.find("FusedMatMul");
  EXPECT_EQ(changed, fused != nullptr && fused->attribute("strassen") != nullptr);
  return changed;
}

TEST(UseStrassen, TakesProductsThatAreWorthIt) {
  EXPECT_TRUE(takes_matmul({1, 197, 768}, {768, 768}));
  EXPECT_TRUE(takes_matmul({512, 768}, {768, 768}));
  EXPECT_FALSE(takes_matmul({1, 8, 768}, {768, 768}));
  EXPECT_FALSE(takes_matmul({512, 768}, {768, 32}));
  EXPECT_FALSE(takes_matmul({512, 767}, {767, 768}));
}

TEST(UseStrassen, OnlyWhereItMay) {
  OptimizeOptions options;
  options.winograd = false;
  EXPECT_FALSE(takes_matmul({512, 768}, {768, 768}, options));
  options = {};
  options.spend_memory = false;
  EXPECT_FALSE(takes_matmul({512, 768}, {768, 768}, options));
}

TEST(UseStrassen, LeavesProductsOfActivations) {
  GraphCase c;
  c.output(c.node("MatMul", {c.input({512, 512}), c.input({512, 512})}));
  c.ready();
  EXPECT_FALSE(use_strassen(c.root(), {}));
}

bool takes_conv(int64_t kernel, int64_t channels) {
  GraphCase c;
  const int64_t pads[] = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
  c.output(c.node("Conv", {c.input({1, channels, 28, 28}), c.weights({channels, channels, kernel, kernel})},
                  c.attrs().set("pads", std::span<const int64_t>(pads))));
  c.ready();
  use_channels_last(c.root(), {});
  infer_graph(c.root());
  use_strassen(c.root(), {});
  return c.find("Conv")->attribute("strassen") != nullptr;
}

TEST(UseStrassen, TakesConvolutionsOfOnePixel) {
  EXPECT_TRUE(takes_conv(1, 256));
  EXPECT_FALSE(takes_conv(3, 256));
  EXPECT_FALSE(takes_conv(1, 32));
}

}  // namespace
}  // namespace plimsoll
